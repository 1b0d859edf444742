"""Judges the goals of a suite by the rows of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from benchmarks.catalogue import HOLDFAST, Goal, Suite

Row = dict[str, Any]
Theirs = tuple[str, str] | float


DISTURBED = 0.2
"""From this share of the processors on, other programs are mentioned. The kernel's own threads,
which write to disk, count as others."""


class ExitCode(IntEnum):
    """Of `python -m benchmarks`. 1 is an error or an interruption, 2 a wrong option."""

    OK = 0
    ROW_MISSING = 3
    GOAL_MISSED = 4


@dataclass(frozen=True)
class Verdict:
    """What was measured, and whether it reaches the goal; None if a row is missing."""

    reached: str
    met: bool | None

    def __str__(self) -> str:
        return {True: "yes", False: "**no**", None: "not judged"}[self.met]


NOT_MEASURED = Verdict("not measured", None)


def number(value: float | None) -> str:
    if value is None:
        return "missing"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def find(rows: list[Row], benchmark: str, system: str) -> Row | None:
    """The row of a system, unless it is missing."""
    return next(
        (
            row
            for row in rows
            if (row["benchmark"], row["system"]) == (benchmark, system) and row["value"] is not None
        ),
        None,
    )


def missing(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["value"] is None]


def exit_code(rows: list[Row], suite: Suite) -> ExitCode:
    """A missing row comes first: with it not every goal could be judged.

    Goals about rows that were not chosen to be measured don't count."""
    if missing(rows):
        return ExitCode.ROW_MISSING
    if any(verdict(rows, goal, goal.theirs).met is False for goal in suite.goals):
        return ExitCode.GOAL_MISSED
    return ExitCode.OK


def goals(rows: list[Row], suite: Suite) -> str:
    """Each goal with what was reached, and the same against a peer in better circumstances where
    there is one."""
    head = ["goal", "reached", "met", *(f"against {name}" for name in suite.harder.values())]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for goal in suite.goals:
        judged = verdict(rows, goal, goal.theirs)
        cells = [goal.text, judged.reached, str(judged)]
        cells += [_against(rows, goal, *names) for names in suite.harder.items()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _against(rows: list[Row], goal: Goal, peer: str, harder: str) -> str:
    if isinstance(goal.theirs, tuple) and goal.theirs[1] == peer:
        return verdict(rows, goal, (goal.theirs[0], harder)).reached
    return ""


def verdict(rows: list[Row], goal: Goal, competitors: Theirs) -> Verdict:
    """Compare medians; further facts stand in brackets."""
    ours = find(rows, goal.ours, HOLDFAST)
    other = find(rows, *competitors) if isinstance(competitors, tuple) else {"value": competitors}
    if not ours or not other or not other["value"]:
        return NOT_MEASURED
    share = ours["value"] / other["value"]
    notes = (_spread(goal, ours, other), _ways(ours, other), _disturbance(ours, other))
    remarks = "; ".join(note for note in notes if note)
    reached = _writer(other)(share) + (f" ({remarks})" if remarks else "")
    return Verdict(reached, goal.allows(share))


def _writer(other: Row) -> Callable[[float], str]:
    """How a figure is written: as a ratio to a peer, or as it is where the goal is a plain
    number."""
    if "system" in other:
        return lambda share: f"{share:.2f} ×"
    return lambda share: number(share * other["value"])


def _spread(goal: Goal, ours: Row, other: Row) -> str:
    """Lowest and highest, where some rounds reach the goal and some don't: then the median tells
    little.

    The systems take turns, so that the rounds of two rows can be compared one by one.
    """
    values = ours.get("values", [])
    against = other.get("values", []) if "system" in other else [other["value"]] * len(values)
    if len(values) != len(against):
        return ""
    shares = [mine / theirs for mine, theirs in zip(values, against, strict=True)]
    if len({goal.allows(share) for share in shares}) < 2:
        return ""
    write = _writer(other)
    return f"rounds: {write(min(shares))} to {write(max(shares))}"


def _ways(ours: Row, other: Row) -> str:
    """Against the same peer used in another way than the one that counts."""
    ways = {way: value for way, value in other.get("ways", {}).items() if way != other["way"]}
    return ", ".join(f"{way}: {ours['value'] / value:.2f} ×" for way, value in ways.items())


def _disturbance(*rows: Row) -> str:
    """Whether other programs used the machine while the rows were measured."""
    share = max(row.get("others_occupied", 0.0) for row in rows)
    return f"other programs used {share:.0%} of the machine" if share >= DISTURBED else ""
