"""`holdfast report`: from a file of comments to a report, and what can be done with one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from holdfast.cli.exits import ExitCode, Paused, RunEnded, StillGoing
from holdfast.cli.kit import Group, session_of
from holdfast.cli.reportwishes import (
    analysis_options,
    asked_for,
    opened,
    reading_options,
    request_for,
)
from holdfast.cli.session import Session, actor, wait_for
from holdfast.cli.watching import OVER, hand_over, show, watch
from holdfast.errors import NotFound
from holdfast.model.run import Run, RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle
    from holdfast.pipelines.report.pipeline import ReportFiles


@click.group(cls=Group)
def command() -> None:
    """Turn comments into a report that people can trust: topics, claims, quotes, summaries,
    cruxes."""


class Built(Struct):
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


# --- build ----------------------------------------------------------------------------------------


@command.command()
@click.argument("file")
@click.option(
    "-o", "--output", metavar="DIR", help="Where the files go. Default: FILE's name with -report."
)
@analysis_options
@reading_options
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="DOLLARS",
              help="Pause before more is spent. Build again with more to go on.")  # fmt: skip
@click.option(
    "--sort", type=click.Choice(["people", "claims"]), default="people", help="What comes first."
)
@click.option(
    "--report-id",
    default="",
    metavar="ID",
    help="Your own name for it. Default: derived from the content.",
)
@click.option("--fresh", is_flag=True, help="Make it anew and ask the model again.")
@click.option("--tenant", metavar="NAME", help="Who the report belongs to.")
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser when it is done.")
@session_of
def build(
    session: Session, file: str, output: str | None, open_: bool, tenant: str | None, **wish: Any
) -> int:
    """Build a report from a file of comments: .csv, .tsv, .json, .jsonl, .xlsx, or - for standard
    input.

    Works offline, without a key. Interrupted, killed or out of budget: the same command goes on
    where it was, and a finished report is found and not made again.

    \b
    Examples:
      holdfast report build comments.csv -o out
      holdfast report build comments.csv --model openai:gpt-4o-mini --budget 5.00 --cruxes
      holdfast report build polis/comments.csv --votes polis/participants-votes.csv
      cat answers.jsonl | holdfast report build - -o out --column comment=answer
    """
    folder = (
        Path(output) if output else Path(f"{Path(file).stem if file != '-' else 'comments'}-report")
    )
    code = wait_for(_build(session, file, folder, tenant or session.loaded.settings.tenant, wish))
    if code == ExitCode.OK and open_:
        _open(folder)
    return code


async def _build(
    session: Session, file: str, folder: Path, tenant: str, wish: dict[str, Any]
) -> int:
    from holdfast.cli.logs import set_up
    from holdfast.cli.progress import progress_on
    from holdfast.cli.signals import StopSignal
    from holdfast.pipelines.report import report
    from holdfast.ports.analyst import Analysts
    from holdfast.services.reports import Reports

    loaded = session.loaded
    set_up(loaded.settings.log, level="warning" if loaded.is_default("log.level") else None)
    holdfast = session.app([report], worker=True)
    progress = progress_on(session.out)
    async with StopSignal() as stop:
        try:
            await holdfast.open()
            request = await request_for(session, holdfast, file, tenant, wish)
            holdfast.use(Analysts).check(request.model)
            reports = Reports(holdfast.runtime, holdfast.operations)
            handle = await reports.build(request, tenant=tenant, actor=actor())
            if (await handle.info()).state == RunState.SUCCEEDED:
                session.out.note(
                    f"run {handle.id} has made this report already; --fresh makes it anew"
                )
            finished = await _until_over(session, holdfast, handle, progress, stop, file)
            if finished.state in OVER:
                return await _hand_out(session, reports, holdfast, handle, finished, folder)
        finally:
            await holdfast.close()
    session.out.note(
        f"\nholdfast: what is done is kept; the same command goes on from there (run {handle.id})"
    )
    return stop.code


async def _until_over(
    session: Session,
    holdfast: Holdfast,
    handle: RunHandle,
    progress: Any,
    stop: StopSignal,
    file: str,
) -> Run:
    from holdfast.pipelines.report import report

    info = await handle.info()
    if info.state in OVER:
        return info
    try:
        if not await watch(handle, show(session, holdfast, handle, report, progress), None, stop):
            await hand_over(session, holdfast)
    except Paused as paused:
        raise StillGoing(
            f"run {handle.id} is paused: {paused.why}. What is done is kept; "
            f"go on with: holdfast{session.options()} report build {file} … --budget MORE"
        ) from paused
    return await handle.info()


async def _hand_out(
    session: Session, reports: Any, holdfast: Holdfast, handle: RunHandle, run: Run, folder: Path
) -> int:
    from holdfast.services.reports import result_of, write_files

    if run.state != RunState.SUCCEEDED:
        raise RunEnded(
            f"run {run.id} {run.state}: {run.error or run.reason}; the same command tries again "
            "from there"
        )
    files = await reports.files(handle)
    write_files(files, folder)
    _tell(session, await result_of(holdfast.runtime.payloads, handle), handle, folder)
    return ExitCode.OK


def _tell(session: Session, result: ReportFiles, handle: RunHandle, folder: Path) -> None:
    built = Built(
        handle.id, handle.created, str(folder), sorted(result.files), result.people, result.comments, result.topics,
        result.claims, result.quotes, result.coverage, result.cost,
    )  # fmt: skip
    if not session.out.for_people:
        session.out.json(built)
        return
    session.out.line(
        f"{result.comments:,} comments by {result.people:,} people: {result.topics} topics, "
        f"{result.claims:,} claims, "
        f"{result.quotes:,} quotes; {result.coverage:.0%} of the comments are in a topic"
    )
    if result.calls:
        price = "price unknown" if result.cost is None else f"${result.cost:,.4f}"
        session.out.line(f"{result.calls:,} calls of {result.model}, {price}")
    session.out.line(f"{folder / 'report.html'}  ({len(result.files) - 1} more files beside it)")


# --- estimate -------------------------------------------------------------------------------------


@command.command()
@click.argument("file")
@analysis_options
@reading_options
@session_of
def estimate(session: Session, file: str, **wish: Any) -> None:
    """Say what a report would cost with a model, before anything is asked.

    \b
    Example:
      holdfast report estimate comments.csv --model openai:gpt-4o-mini --cruxes
    """
    from holdfast.app import Holdfast
    from holdfast.cli.render.estimate import estimate_page
    from holdfast.ports.analyst import Analysts
    from holdfast.services.reports import comments_in

    asked = asked_for(session, wish)
    with opened(file) as source:
        comments, brief = comments_in(file, source.read(), asked)
    analyst = Holdfast("memory:", worker=False).use(Analysts).named(asked["model"])
    found = analyst.estimate(comments, brief, asked["cruxes"])
    session.out.value(found, lambda: estimate_page(found))


# --- looking at reports ---------------------------------------------------------------------------


@command.command("open")
@click.argument("where", metavar="REPORT", default=".")
@session_of
def open_(session: Session, where: str) -> None:
    """Open a report's page in a browser.

    \b
    Example:
      holdfast report open out
    """
    session.out.line(str(_open(Path(where))))


def _open(where: Path) -> Path:
    from holdfast.services.reports import PAGE

    page = where / PAGE if where.is_dir() else where
    if not page.is_file():
        raise NotFound(
            f"there is no page at {page}: give a folder that `holdfast report build` wrote"
        )
    click.launch(page.resolve().as_uri())
    return page


@command.command()
@click.argument("where", metavar="REPORT")
@session_of
def validate(session: Session, where: str) -> int:
    """Check that a report keeps its promises: every quote verbatim, every citation there, every row
    accounted for.

    \b
    Example:
      holdfast report validate out
    """
    from holdfast.pipelines.report.outputs import problems
    from holdfast.services.reports import load_report

    found = problems(load_report(Path(where)))
    if not session.out.for_people:
        session.out.json({"problems": found})
    else:
        for problem in found:
            session.out.line(f"✘ {problem}")
        session.out.line(
            f"{len(found)} problems" if found else "✔ every quote, citation and figure holds"
        )
    return ExitCode.PROBLEMS if found else ExitCode.OK


@command.command()
@click.argument("before", metavar="REPORT")
@click.argument("after", metavar="REPORT")
@session_of
def diff(session: Session, before: str, after: str) -> None:
    """Say what changed between two reports: topics, claims, support, figures.

    \b
    Example:
      holdfast report diff last-week this-week
    """
    from holdfast.pipelines.report.outputs import compare, describe
    from holdfast.services.reports import load_report

    comparison = compare(load_report(Path(before)), load_report(Path(after)))
    if session.out.for_people:
        session.out.line(describe(comparison))
    else:
        session.out.json(comparison)


@command.command()
@click.argument("format", type=click.Choice(["t3c", "html", "md", "csv", "json"]))
@click.argument("where", metavar="REPORT")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="A file, or a folder for csv. Default: beside the report.",
)
@session_of
def export(session: Session, format: str, where: str, output: str | None) -> None:
    """Write a report in another format. `t3c` is what Talk to the City's own viewer opens.

    \b
    Examples:
      holdfast report export t3c out
      holdfast report export md out -o report.md
    """
    from holdfast.services.reports import export as written

    place = Path(where)
    folder = place if place.is_dir() else place.parent
    for path in written(format, place, Path(output) if output else folder):
        session.out.line(str(path))
