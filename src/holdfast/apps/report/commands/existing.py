"""`holdfast report open`, `validate`, `diff`, `export`: what can be done with a report that is
there."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session
from holdfast.errors import NotFound

FILES = "this works on the files of a report here; a service has them at /report/ID/FILE"
"""Why no service can do what these commands do."""


@click.command("open", cls=CliCommand, local=FILES)
@click.argument("where", metavar="REPORT", default=".")
@session_of
def open_(session: Session, where: str) -> None:
    """Open a report's page in a browser.

    \b
    Example:
      holdfast report open out
    """
    session.out.line(str(open_page(Path(where))))


def open_page(where: Path) -> Path:
    """Open the page of a folder, or a page itself, and say which one it is."""
    from holdfast.apps.report.service import PAGE

    page = where / PAGE if where.is_dir() else where
    if not page.is_file():
        raise NotFound(
            f"there is no page at {page}: give a folder that `holdfast report build` wrote"
        )
    click.launch(page.resolve().as_uri())
    return page


@click.command(cls=CliCommand, local=FILES)
@click.argument("where", metavar="REPORT")
@session_of
def validate(session: Session, where: str) -> int:
    """Check that a report keeps its promises: every quote is verbatim, every citation exists, every
    row is accounted for.

    \b
    Example:
      holdfast report validate out
    """
    from holdfast.apps.report.outputs import problems
    from holdfast.apps.report.service import load_report

    broken = problems(load_report(Path(where)))
    if not session.out.for_people:
        session.out.json({"problems": broken})
    else:
        for problem in broken:
            session.out.line(f"✘ {problem}")
        session.out.line(
            f"{len(broken)} problems" if broken else "✔ every quote, citation and figure holds"
        )
    return ExitCode.PROBLEMS if broken else ExitCode.OK


@click.command(cls=CliCommand, local=FILES)
@click.argument("before", metavar="REPORT")
@click.argument("after", metavar="REPORT")
@session_of
def diff(session: Session, before: str, after: str) -> None:
    """Say what changed between two reports: topics, claims, support, figures.

    \b
    Example:
      holdfast report diff last-week this-week
    """
    from holdfast.apps.report.outputs import compare, describe
    from holdfast.apps.report.service import load_report

    comparison = compare(load_report(Path(before)), load_report(Path(after)))
    if session.out.for_people:
        session.out.line(describe(comparison))
    else:
        session.out.json(comparison)


@click.command(cls=CliCommand, local=FILES)
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
    from holdfast.apps.report.service import export_report

    report = Path(where)
    folder = report if report.is_dir() else report.parent
    for path in export_report(format, report, Path(output) if output else folder):
        session.out.line(str(path))
