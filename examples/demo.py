"""`make demo`: 200 comments of a small town become a report, offline, and what came out is shown.

Everything happens in ./holdfast-demo: the store, and the report with its page, tables and text. Run
it again: the finished report is found and not made again. The exit code is 0 only if the report
keeps its promises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.apps.report.model.document import Report, ReportCrux
from holdfast.apps.report.service import load_report

DATA = Path(__file__).resolve().with_name("data")
FOLDER = Path("holdfast-demo")
REPORT = FOLDER / "report"
STORE = ["--store", f"sqlite:///{FOLDER}/holdfast.db"]
BAR = 32


def holdfast(*words: str) -> int:
    """The command, as anybody would type it."""
    return subprocess.run([sys.executable, "-m", "holdfast", *words], check=False).returncode


def build() -> int:
    return holdfast(
        *("report", "build", str(DATA / "riverside.csv"), "-o", str(REPORT), *STORE),
        *("--votes", str(DATA / "riverside-votes.csv")),
        *("--title", "What Riverside wants"),
        *("--question", "What should become of the riverside and of Bridge Street?"),
    )


def page(report: Report) -> Iterator[RenderableType]:
    """What the report says, as far as a terminal can show it."""
    numbers = {c.id: c.number for t in report.topics for s in t.subtopics for c in s.claims}
    yield heading("Key findings")
    for sentence in report.findings:
        cites = " ".join(f"[{numbers[cite]}]" for cite in sentence.cites)
        yield Padding(Text.assemble("• ", sentence.text, " ", (cites, "dim")), (0, 2))
    yield heading("Topics, by people")
    yield topics(report)
    if report.cruxes:
        yield heading("What divides people most")
        yield from (crux(cite) for cite in report.cruxes[:4])
    yield heading("Nothing is lost silently")
    yield funnel(report)


def heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def topics(report: Report) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2))
    most = max(topic.people for topic in report.topics)
    for topic in report.topics:
        bar = "█" * max(1, round(BAR * topic.people / most))
        names = ", ".join(subtopic.name for subtopic in topic.subtopics)
        # On a narrow terminal this column alone is cut short.
        subtopics = Text(names, no_wrap=True, overflow="ellipsis")
        table.add_row(
            topic.name,
            Text(bar, style="cyan"),
            f"{topic.people} people",
            f"{topic.claims} claims",
            subtopics,
        )
    for column in table.columns[:4]:
        column.no_wrap = True
    return table


def crux(crux_draft: ReportCrux) -> Padding:
    width = max(crux_draft.agree + crux_draft.disagree + crux_draft.unclear, 1)
    parts = [
        round(BAR * count / width)
        for count in (crux_draft.agree, crux_draft.unclear, crux_draft.disagree)
    ]
    strip = Text.assemble(
        ("█" * parts[0], "green"), ("░" * parts[1], "dim"), ("█" * parts[2], "red")
    )
    counts = (
        f"  {crux_draft.agree} agree, {crux_draft.disagree} disagree, {crux_draft.unclear} pass"
    )
    return Padding(
        Group(Text(f"• {crux_draft.statement}"), Text.assemble("  ", strip, (counts, "dim"))),
        (0, 2),
    )


def funnel(report: Report) -> Padding:
    counts = report.counts
    lost = [f"{entry.count} {entry.reason}" for stage in report.funnel[:3] for entry in stage.lost]
    lines = [
        f"{counts.rows} rows → {counts.comments} comments by {counts.people} people → "
        f"{counts.quotes} quotes, "
        f"every one verbatim → {counts.claims} claims",
        f"kept out, with the reason in rows.csv: {', '.join(lost) or 'none'}",
        f"in a topic: {report.coverage.placed:.0%} of the comments; quoted: "
        f"{report.coverage.quoted_characters:.0%} of all characters",
    ]
    return Padding(Text("\n".join(lines)), (0, 2))


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    if (code := build()) != 0:
        return code
    console = Console(highlight=False)
    for part in page(load_report(REPORT)):
        console.print(part)
    console.print("\n[bold]Does it hold?[/bold]")
    code = holdfast("report", "validate", str(REPORT))
    console.print(
        f"\nOpen it:  {REPORT / 'report.html'}\nAgain:    make demo   (found, not made again)",
        soft_wrap=True,
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
