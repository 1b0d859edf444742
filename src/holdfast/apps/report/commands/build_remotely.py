"""`holdfast report build --url`: the file goes to a service, whose workers make the report; its
files are written here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.apps.report.commands.request import job_message, open_file, request_fields
from holdfast.cli.exits import ExitCode, RunEnded
from holdfast.cli.run_remotely import watch_remotely
from holdfast.cli.session import Session
from holdfast.errors import InvalidInput
from holdfast.model.run import RunState

if TYPE_CHECKING:
    from holdfast.client import AsyncClient
    from holdfast.services.service import Accepted

FILES = ("file", "votes")


async def build_remotely(
    session: Session, file: str, folder: Path, tenant: str | None, options: dict[str, Any]
) -> int:
    from holdfast.apps.report.commands.build import print_result
    from holdfast.apps.report.pipeline import ReportFiles
    from holdfast.apps.report.service import write_files

    if options["review"]:
        raise InvalidInput(
            "--review needs the store: leave out --url, or give the topics with --topic"
        )
    async with session.remote(tenant=tenant) as client:
        run, created = await _start(client, session, file, options)
        ended = (await watch_remotely(session, client, run)).run
        if ended.state != RunState.SUCCEEDED:
            raise RunEnded.repeatable(ended)
        result = msgspec.json.decode(await client.runs.result(run), type=ReportFiles)
        files = {name: await client.download(f"/report/{run}/{name}") for name in result.files}
    write_files(files, folder)
    print_result(session, result, run, created, folder)
    return ExitCode.OK


async def _start(
    client: AsyncClient, session: Session, file: str, options: dict[str, Any]
) -> tuple[str, bool]:
    """The run that makes the report, and whether it is new."""
    if (job := job_message(file)) is not None:
        accepted: Accepted = await client.submit("report", job)
        return accepted.run.id, accepted.created
    fields = request_fields(session, options)
    parts = {"file": file, "votes": options["votes"]}
    files = {}
    for name in FILES:
        if path := parts[name]:
            with open_file(path) as source:
                files[name] = ("comments" if path == "-" else Path(path).name, source.read())
    form = {"request": msgspec.json.encode(fields).decode()}
    headers, _ = await client.upload("/create", form, files)
    created = "holdfast-existing" not in headers
    return headers["location"].rpartition("/")[2], created
