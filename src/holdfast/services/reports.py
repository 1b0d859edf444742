"""Building reports: the run behind a file and wishes, its budget, and its files on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.payloads import Payloads
from holdfast.errors import Conflict, InvalidInput, NotFound, Permanent
from holdfast.model.codec import codec_for
from holdfast.model.ids import new_id
from holdfast.model.run import RunState
from holdfast.pipelines.report.desk import allowance
from holdfast.pipelines.report.pipeline import ReportFiles, report
from holdfast.pipelines.report.request import ReportRequest

if TYPE_CHECKING:
    from holdfast.engine.runtime import Runtime
    from holdfast.model.report.brief import Brief
    from holdfast.model.report.comment import Comment
    from holdfast.model.report.document import Report
    from holdfast.services.operations import Operations

DOCUMENT = "report.json"
PAGE = "report.html"

_files = msgspec.json.Decoder(ReportFiles)


class Reports:
    """Finds or starts the run of a report. A failed or paused one goes on; a finished one is not
    made again."""

    def __init__(self, runtime: Runtime, operations: Operations) -> None:
        self._runtime = runtime
        self._operations = operations

    async def build(self, request: ReportRequest, *, tenant: str, actor: str) -> RunHandle:
        handle = await self._submit(request, tenant, request.key)
        if handle.created:
            return handle
        state = (await handle.info()).state
        if state == RunState.CANCELLED or request.fresh:  # final, and somebody asks again
            return await self._submit(
                request, tenant, f"{request.key}:{new_id(self._runtime.clock.now())}"
            )
        if state in (RunState.FAILED, RunState.PAUSED):
            await self._grant(handle.id, tenant, request.budget)
            await self._operations.resume(handle.id, actor=actor)
        return handle

    async def _submit(self, request: ReportRequest, tenant: str, key: str) -> RunHandle:
        try:
            return await Intake(self._runtime).submit(report, request, tenant=tenant, key=key)
        except Conflict as conflict:
            if request.report_id or conflict.run_id is None:
                raise
            return RunHandle(
                self._runtime, conflict.run_id, report
            )  # the same report with another budget

    async def _grant(self, run: str, tenant: str, budget: float | None) -> None:
        """From its next attempt on, the run may spend this much in all."""
        if budget is None:
            return
        number = 1
        while not await self._runtime.payloads.put_at(
            allowance(tenant, run, number), str(budget).encode()
        ):
            number += 1

    async def files(self, handle: RunHandle) -> dict[str, bytes]:
        """The files of a finished report, by name."""
        result = await result_of(self._runtime.payloads, handle)
        found: dict[str, bytes] = {}
        for name, where in result.files.items():
            data = await self._runtime.payloads.get(where)
            if data is None:
                raise Permanent(
                    f"{name} of run {handle.id} is missing from the blob store; build again with "
                    "--fresh"
                )
            found[name] = data
        return found


async def result_of(payloads: Payloads, handle: RunHandle) -> ReportFiles:
    text = await payloads.fetch((await handle.info()).result or "null")
    if text is None:
        raise Permanent(f"the result of run {handle.id} is missing from the blob store")
    return _files.decode(text)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Put them into a folder, each complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        part = folder / f".{name}.part"
        part.write_bytes(data)
        part.replace(folder / name)


def load_report(where: Path) -> Report:
    """The report in a folder, or in a report.json."""
    from holdfast.pipelines.report.outputs import from_json

    path = where / DOCUMENT if where.is_dir() else where
    if not path.exists():
        raise NotFound(
            f"there is no report at {path}: give a folder that `holdfast report build` wrote, or a "
            f"{DOCUMENT}"
        )
    try:
        return from_json(path.read_bytes())
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def export(format: str, where: Path, target: Path) -> list[Path]:
    """Write a report in another format, into a folder or to a file, and say what was written."""
    from holdfast.pipelines.report.printing import exported

    files = exported(format, load_report(where))
    if len(files) == 1 and not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(next(iter(files.values())))
        return [target]
    write_files(files, target)
    return [target / name for name in files]


def check_readable(file: str, asked: Mapping[str, Any]) -> None:
    """Raise what is wrong with a file that can't be read at all, before a run is made of it."""
    from holdfast.pipelines.report.intake import reading_options
    from holdfast.pipelines.report.reading import CommentReader
    from holdfast.services.uploads import parts

    path = Path(file)
    if path.is_file():
        request = codec_for(ReportRequest).validate({**asked, "rows": []})
        next(iter(CommentReader(lambda: parts(path), path.name, reading_options(request))), None)


def comments_in(
    filename: str, data: bytes, asked: Mapping[str, Any]
) -> tuple[list[Comment], Brief]:
    """The comments of a file and what analysts would be told, without a run."""
    from holdfast.pipelines.report.intake import reading_options
    from holdfast.pipelines.report.reading import CommentReader

    request = codec_for(ReportRequest).validate({**asked, "rows": []})
    reader = CommentReader(lambda: [data], filename, reading_options(request))
    comments = [comment for _, comment in reader if comment is not None]
    return comments, request.brief(reader.language)
