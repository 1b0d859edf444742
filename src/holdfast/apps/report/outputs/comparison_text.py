"""The differences between two reports as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.apps.report.model.document import ReportClaim, ReportTopic
from holdfast.apps.report.outputs.differences import (
    Change,
    Changes,
    Comparison,
    Figure,
    name_of,
)

SHOWN = 20
"""Claims of one kind that are listed; the others are counted."""
LONG = 100

SHARES = {
    "placed": "comments in a topic",
    "speaking": "comments with a claim",
    "quoted_characters": "text inside a quote",
}


def describe(comparison: Comparison) -> str:
    """What changed, the largest change first."""
    return "\n".join(_lines(comparison))


def _lines(comparison: Comparison) -> Iterator[str]:
    if comparison.empty:
        yield "The two reports say the same."
        return
    yield from (_figure(figure) for figure in comparison.figures if _visible(figure))
    added, removed = len(comparison.comments_added), len(comparison.comments_removed)
    if added or removed:
        yield f"Comments: {added:,} new, {removed:,} gone"
    yield from _section("Topics", comparison.topics)
    yield from _section("Claims", comparison.claims)


def _visible(figure: Figure) -> bool:
    """Shares are told to a tenth of a percent: what is smaller is not worth a line."""
    return figure.name not in SHARES or f"{figure.before:.1%}" != f"{figure.after:.1%}"


def _figure(figure: Figure) -> str:
    if figure.name in SHARES:
        return f"{SHARES[figure.name]}: {figure.before:.1%} → {figure.after:.1%}"
    return (
        f"{figure.name}: {figure.before:,} → {figure.after:,} ({figure.after - figure.before:+,})"
    )


def _section(title: str, changes: Changes[ReportTopic] | Changes[ReportClaim]) -> Iterator[str]:
    new, gone, changed = len(changes.added), len(changes.removed), len(changes.changed)
    yield f"{title}: {new:,} new, {gone:,} gone, {changed:,} changed, {changes.same:,} the same"
    yield from _some(
        [f"  + {_entry(entry)}" for entry in sorted(changes.added, key=lambda entry: -entry.people)]
    )
    yield from _some(
        [
            f"  - {_entry(entry)}"
            for entry in sorted(changes.removed, key=lambda entry: -entry.people)
        ]
    )
    largest = sorted(changes.changed, key=lambda change: -abs(change.people))
    yield from _some([f"  ~ {_change(change)}" for change in largest])


def _some(lines: list[str]) -> Iterator[str]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"    … and {len(lines) - SHOWN} more"


def _entry(entry: ReportTopic | ReportClaim) -> str:
    return f"{_printable(name_of(entry))} ({_people(entry.people)})"


def _change(change: Change[ReportTopic] | Change[ReportClaim]) -> str:
    name = _printable(name_of(change.after))
    if change.renamed:
        name = f"{_printable(name_of(change.before))} → {name}"
    if not change.people:
        return f"{name} ({_people(change.after.people)})"
    return f"{name} ({change.before.people:,} → {_people(change.after.people)})"


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _printable(text: str) -> str:
    """On one line, without anything a terminal would obey."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= LONG else line[: LONG - 1] + "…"
