"""`holdfast report build`: submit the report, execute it here, write its files into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from holdfast.apps.report.commands.existing import open_page
from holdfast.apps.report.commands.options import analysis_options, reading_options
from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode, Paused, RunEnded
from holdfast.cli.session import Session, actor, wait_for
from holdfast.cli.watching import OVER, hand_over, show, watch
from holdfast.errors import InvalidInput, StillRunning
from holdfast.model.run import Run, RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.apps.report.model.taxonomy import Clustering
    from holdfast.apps.report.pipeline import ReportFiles
    from holdfast.apps.report.service import Reports
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle

_MANY_SILENT = 0.1
"""A larger share of comments that say nothing is told beside the figures."""

TOPICS = "topics.json"
"""The file that people review topics in."""


class BuildOutput(Struct):
    """What `report build --json` prints."""

    run: str
    created: bool
    folder: str
    files: list[str]
    people: int
    comments: int
    topics: int
    claims: int
    quotes: int
    coverage: float
    cost: float | None


@click.command(cls=CliCommand)
@click.argument("file")
@click.option(
    "-o", "--output", metavar="DIR", help="Where the files go. Default: FILE's name with -report."
)
@analysis_options
@reading_options
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="Pause before more is spent. Build again with a larger budget to go on.",
)
@click.option(
    "--reviewer",
    default="",
    metavar="MODEL",
    help="A second model reviews names and findings; the report says where it disagrees.",
)
@click.option(
    "--sort", type=click.Choice(["people", "claims"]), default="people", help="What comes first."
)
@click.option(
    "--report-id",
    default="",
    metavar="ID",
    help="Your own id of the report. Default: derived from the content.",
)
@click.option(
    "--review",
    is_flag=True,
    help="Pause when there are topics: edit topics.json in DIR, then run the same command again.",
)
@click.option("--fresh", is_flag=True, help="Make the report again, and ask the model again.")
@click.option("--tenant", metavar="NAME", help="The tenant of the report.")
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser when it is done.")
@session_of
def build(
    session: Session,
    file: str,
    output: str | None,
    open_: bool,
    tenant: str | None,
    **options: Any,
) -> int:
    """Build a report from a file of comments: .csv, .tsv, .json, .jsonl, .xlsx, or - for standard
    input.

    Works offline, without a key. If it is interrupted, killed or runs out of budget, the same
    command goes on where it was; a finished report is not made again. With --url a service makes
    the report, and its files are written here.

    \b
    Examples:
      holdfast report build comments.csv -o out
      holdfast report build comments.csv --model openai:gpt-4o-mini --budget 5.00 --cruxes
      holdfast report build polis/comments.csv --votes polis/participants-votes.csv
      cat answers.jsonl | holdfast report build - -o out --column comment=answer
    """
    name = "comments" if file == "-" else Path(file).stem
    folder = Path(output or f"{name}-report")
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: give a folder for the report with -o FOLDER")
    if session.remote_url is not None:
        from holdfast.apps.report.commands.build_remotely import build_remotely

        code = wait_for(build_remotely(session, file, folder, tenant, options))
    else:
        tenant = tenant or session.loaded.settings.tenant
        code = wait_for(_build(session, file, folder, tenant, options))
    if code == ExitCode.OK and open_:
        open_page(folder)
    return code


async def _build(
    session: Session, file: str, folder: Path, tenant: str, options: dict[str, Any]
) -> int:
    from holdfast.apps.report import report
    from holdfast.apps.report.analyst import Analysts
    from holdfast.apps.report.commands.request import request_for
    from holdfast.apps.report.service import Reports
    from holdfast.cli.logs import set_up
    from holdfast.cli.progress import progress_on
    from holdfast.cli.signals import StopSignal

    loaded = session.loaded
    set_up(loaded.settings.log, level="warning" if loaded.is_default("log.level") else None)
    app = session.app([report], worker=True)
    progress = progress_on(session.out)
    async with StopSignal(app) as stop:
        try:
            await app.open()
            reviewed = _reviewed_topics(folder) if options["review"] else None
            request = await request_for(session, app, file, tenant, options, reviewed)
            app.use(Analysts).check(request.model)
            if request.reviewer:
                app.use(Analysts).check(request.reviewer)
            reports = Reports(app)
            handle = await reports.build(request, tenant=tenant, actor=actor())
            waits = request.review and not request.reviewed
            if (await handle.info()).state == RunState.SUCCEEDED:
                session.out.note(
                    f"run {handle.id} has made this report already; --fresh makes it anew"
                )
            try:
                run = await _until_over(session, app, handle, progress, stop, file)
            except StillRunning:
                if waits and (topics := await reports.topics(handle)):
                    raise _for_review(folder / TOPICS, topics) from None
                raise
            if run.state in OVER:
                return await _write_files(session, reports, handle, run, folder)
        finally:
            await app.close()
    session.out.note(
        f"\nholdfast: what is done is kept; the same command goes on from there (run {handle.id})"
    )
    return stop.code


async def _until_over(
    session: Session,
    app: Holdfast,
    handle: RunHandle,
    progress: Any,
    stop: StopSignal,
    file: str,
) -> Run:
    """The run when it has ended, or when somebody stopped the waiting."""
    from holdfast.apps.report import report

    run = await handle.info()
    if run.state in OVER:
        return run
    try:
        if not await watch(handle, show(session, app, handle, report, progress), None, stop):
            await hand_over(session, app)
    except Paused as paused:
        raise StillRunning(
            f"run {handle.id} is paused: {paused.why}. What is done is kept; "
            f"go on with: holdfast{session.options()} report build {file} … --budget MORE"
        ) from paused
    return await handle.info()


def _reviewed_topics(folder: Path) -> list[Any] | None:
    """The topics in the file that people edited; None if there is none yet."""
    from holdfast.apps.report.review import from_file

    path = folder / TOPICS
    return from_file(path.read_bytes(), str(path)) if path.exists() else None


def _for_review(path: Path, clustering: Clustering) -> StillRunning:
    from holdfast.apps.report.review import to_file

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_file(clustering))
    return StillRunning(
        f"{len(clustering.topics)} topics are in {path}: edit them there, then run the same "
        "command again, and it goes on with them"
    )


async def _write_files(
    session: Session, reports: Reports, handle: RunHandle, run: Run, folder: Path
) -> int:
    from holdfast.apps.report.service import write_files

    if run.state != RunState.SUCCEEDED:
        raise RunEnded.repeatable(run)
    write_files(await reports.files(handle), folder)
    print_result(session, await reports.result(handle), handle.id, handle.created, folder)
    return ExitCode.OK


def _counted(count: int, singular: str, plural: str = "") -> str:
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _silent(share: float) -> str:
    """What is said of comments without a claim: greetings, tests, strings of letters."""
    return f", {share:.0%} say nothing" if share >= _MANY_SILENT else ""


def print_result(
    session: Session, result: ReportFiles, run: str, created: bool, folder: Path
) -> None:
    if not session.out.for_people:
        session.out.json(_output(result, run, created, folder))
        return
    session.out.line(
        f"{_counted(result.comments, 'comment')} by {_counted(result.people, 'person', 'people')}: "
        f"{_counted(result.topics, 'topic')}, {_counted(result.claims, 'claim')}, "
        f"{_counted(result.quotes, 'quote')}; {result.coverage:.0%} of the comments are in a topic"
        + _silent(1 - result.speaking)
    )
    if result.calls:
        price = "price unknown" if result.cost is None else f"${result.cost:,.4f}"
        session.out.line(f"{result.calls:,} calls of {result.model}, {price}")
    session.out.line(f"{folder / 'report.html'}  ({len(result.files) - 1} more files beside it)")


def _output(result: ReportFiles, run: str, created: bool, folder: Path) -> BuildOutput:
    return BuildOutput(
        run=run,
        created=created,
        folder=str(folder),
        files=sorted(result.files),
        people=result.people,
        comments=result.comments,
        topics=result.topics,
        claims=result.claims,
        quotes=result.quotes,
        coverage=result.coverage,
        cost=result.cost,
    )
