"""Building reports: the run behind a request, its budget, and its files on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.apps.report.model.taxonomy import Clustering
from holdfast.apps.report.pipeline import ReportFiles, report
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.step_inputs import budget_key
from holdfast.engine.handle import RunHandle
from holdfast.errors import Conflict, InvalidInput, NotFound, Permanent
from holdfast.model.codec import codec_for
from holdfast.model.ids import new_id
from holdfast.model.run import RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.apps.report.model.brief import Brief
    from holdfast.apps.report.model.comment import Comment
    from holdfast.apps.report.model.document import Report

DOCUMENT = "report.json"
PAGE = "report.html"

_decode_clustering = msgspec.json.Decoder(Clustering).decode
_decode_result = msgspec.json.Decoder(ReportFiles).decode


class Reports:
    """Finds or starts the run of a report. A failed or paused one goes on; a finished one is not
    made again."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app
        self._payloads = app.runtime.payloads

    async def build(self, request: ReportRequest, *, tenant: str, actor: str) -> RunHandle:
        handle = await self._submit(request, tenant, request.key)
        if handle.created:
            return handle
        state = (await handle.info()).state
        if state == RunState.CANCELLED or request.fresh:  # final, and somebody asks again
            key = f"{request.key}:{new_id(self._app.runtime.clock.now())}"
            return await self._submit(request, tenant, key)
        if state in (RunState.FAILED, RunState.PAUSED):
            await self._raise_budget(handle.id, tenant, request.budget)
            await self._app.operations.resume(handle.id, actor=actor)
        return handle

    async def _submit(self, request: ReportRequest, tenant: str, key: str) -> RunHandle:
        try:
            return await self._app.submit(report, request, tenant=tenant, key=key)
        except Conflict as conflict:
            if request.report_id or conflict.run_id is None:
                raise
            # the same report with another budget
            return RunHandle(self._app.runtime, conflict.run_id, report)

    async def _raise_budget(self, run: str, tenant: str, budget: float | None) -> None:
        """From its next attempt on, the run may spend this much in all."""
        if budget is None:
            return
        number, data = 1, str(budget).encode()
        while not await self._payloads.put_at(budget_key(tenant, run, number), data):
            number += 1

    async def result(self, handle: RunHandle) -> ReportFiles:
        """The result of a finished run."""
        run = await handle.info()
        text = await self._payloads.result_of(run)
        return _decode_result(text)

    async def topics(self, handle: RunHandle) -> Clustering | None:
        """The topics of a run that has got so far, whatever became of it then."""
        for checkpoint in await self._app.runtime.store.checkpoints(handle.id):
            if (checkpoint.step, checkpoint.key) == ("clustering", ""):
                text = await self._payloads.fetch(checkpoint.value)
                return _decode_clustering(text) if text else None
        return None

    async def files(self, handle: RunHandle) -> dict[str, bytes]:
        """The files of a finished report, by name."""
        files: dict[str, bytes] = {}
        for name, key in (await self.result(handle)).files.items():
            data = await self._payloads.get(key)
            if data is None:
                raise Permanent(
                    f"{name} of run {handle.id} is missing from the blob store; build again with "
                    "--fresh"
                )
            files[name] = data
        return files


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Put them into a folder, each complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        part = folder / f".{name}.part"
        part.write_bytes(data)
        part.replace(folder / name)


def load_report(where: Path) -> Report:
    """The report in a folder, or in a report.json."""
    from holdfast.apps.report.outputs import from_json

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


def export_report(format: str, where: Path, target: Path) -> list[Path]:
    """Write a report in another format, into a folder or to a file, and say what was written."""
    from holdfast.apps.report.rendering import export_files

    files = export_files(format, load_report(where))
    if len(files) == 1 and not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(next(iter(files.values())))
        return [target]
    write_files(files, target)
    return [target / name for name in files]


def check_readable(file: str, fields: Mapping[str, Any]) -> None:
    """Raise what is wrong with a file that can't be read at all, before a run is made of it.
    `fields` are those of the request, without its file."""
    from holdfast.apps.report.comment_storage import reading_options
    from holdfast.apps.report.reading import CommentReader, check_not_empty
    from holdfast.apps.report.uploads import file_parts

    path = Path(file)
    if path.is_file():
        options = reading_options(_without_file(fields))
        reader = CommentReader(lambda: file_parts(path), path.name, options)
        check_not_empty(reader, path.name)


def comments_in(
    filename: str, data: bytes, fields: Mapping[str, Any]
) -> tuple[list[Comment], Brief]:
    """The comments of a file and the brief for analysts, without a run."""
    from holdfast.apps.report.comment_storage import reading_options
    from holdfast.apps.report.reading import CommentReader

    request = _without_file(fields)
    reader = CommentReader(lambda: [data], filename, reading_options(request))
    comments = [comment for _, comment in reader if comment is not None]
    return comments, request.brief(reader.language)


def _without_file(fields: Mapping[str, Any]) -> ReportRequest:
    return codec_for(ReportRequest).validate({**fields, "rows": []})
