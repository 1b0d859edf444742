"""Judges the goals of a suite by the rows of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.catalogue import ANY_PEER, Goal, Suite

HOLDFAST = "holdfast"
SATURATED = 0.9
"""From this share on there is nothing left to give: 1.11 times as much at the very most, and rounds differ by more."""
UNDISTURBED = 0.1
"""Up to this share of the processors others are no bound. The kernel's own threads, which write to disk, are in it."""

Row = dict[str, Any]


def number(value: float | None) -> str:
    if value is None:
        return "missing"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def find(rows: list[Row], benchmark: str, system: str) -> Row | None:
    """The row of a system; for ANY_PEER the best one that is not ours."""
    fitting = [row for row in rows if row["benchmark"] == benchmark and row["value"] is not None]
    if system != ANY_PEER:
        return next((row for row in fitting if row["system"] == system), None)
    peers = [row for row in fitting if row["system"] != HOLDFAST]
    best = max if peers and peers[0]["higher_is_better"] else min
    return best(peers, key=lambda row: row["value"], default=None)


def value(rows: list[Row], benchmark: str, system: str) -> float | None:
    row = find(rows, benchmark, system)
    return row["value"] if row else None


def goals(rows: list[Row], suite: Suite) -> str:
    """Each goal with what was reached, and the same against a peer in better circumstances where there is one."""
    head = ["goal", "reached", "met", *(f"against {name}" for name in suite.harder.values())]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for goal in suite.goals:
        cells = [goal.text, *_judge(rows, goal, goal.theirs)]
        for peer, harder in suite.harder.items():
            against = isinstance(goal.theirs, tuple) and goal.theirs[1] == peer
            cells.append(_judge(rows, goal, (goal.theirs[0], harder))[0] if against else "")  # type: ignore[index]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _judge(rows: list[Row], goal: Goal, theirs: tuple[str, str] | float) -> tuple[str, str]:
    """What was reached, and whether that is enough. Medians decide; what else there is to know stands in brackets."""
    ours = find(rows, goal.ours, HOLDFAST)
    other = find(rows, *theirs) if isinstance(theirs, tuple) else {"value": theirs}
    if not ours or not other or not other["value"]:
        return "not measured", "not judged"
    share = ours["value"] / other["value"]
    named = f" {other['system']}" if isinstance(theirs, tuple) and theirs[1] == ANY_PEER else ""
    notes = [_spread(goal, ours, other), _other_ways(ours, other), _occupied(ours) if goal.or_saturated else ""]
    said = "; ".join(note for note in notes if note)
    text = _writer(other)(share) + named + (f" ({said})" if said else "")
    return text, _verdict(goal, share, ours)


def _verdict(goal: Goal, share: float, ours: Row) -> str:
    if goal.allows(share):
        return "yes"
    bound = saturated(ours) if goal.or_saturated else None
    return f"yes: {bound} is the bound" if bound else "**no**"


def _writer(other: Row) -> Callable[[float], str]:
    """Against a system we say a ratio, against a plain number the figure itself."""
    if "system" in other:
        return lambda share: f"{share:.2f} ×"
    return lambda share: number(share * other["value"])


def _spread(goal: Goal, ours: Row, other: Row) -> str:
    """Lowest and highest, where some rounds reach the goal and some don't: then the median tells little.

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


def _other_ways(ours: Row, other: Row) -> str:
    """Against the same peer used in another way than the one that counts."""
    ways = {way: value for way, value in other.get("ways", {}).items() if way != other["way"]}
    return ", ".join(f"{way}: {ours['value'] / value:.2f} ×" for way, value in ways.items())


def _occupied(row: Row) -> str:
    """The evidence that a verdict about the bound rests on."""
    found = [f"Redis' thread {row['server_occupied']:.2f}"] if "server_occupied" in row else []
    if "machine_occupied" in row:
        found.append(f"processors {row['machine_occupied']:.2f}, by others {row['others_occupied']:.2f}")
    return f"occupied: {', '.join(found)}" if found else ""


def saturated(row: Row) -> str | None:
    """What had nothing left to give while the row was measured.

    Only the row in question counts: a server that is occupied with one worker may still serve two better, since they
    share its fsyncs. And where others used the processors, a thread or a machine may be full because of them.
    """
    if row.get("others_occupied", 1.0) > UNDISTURBED:
        return None
    if row.get("server_occupied", 0.0) >= SATURATED:
        return "the server"
    return "the machine" if row.get("machine_occupied", 0.0) >= SATURATED else None
