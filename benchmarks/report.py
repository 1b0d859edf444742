"""Tables: on the terminal, and in the marked section of the README."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.catalogue import ANY_PEER, Goal, Suite

README = Path(__file__).with_name("README.md")
HOLDFAST = "holdfast"
SATURATED = 0.9
"""From this share of a processor on there is none left."""

Row = dict[str, Any]


def marks(suite: Suite) -> tuple[str, str]:
    """What the suite's section of the README stands between."""
    command = "python -m benchmarks --servers --readme" if suite.driver else "python -m benchmarks --readme"
    return f"<!-- {suite.name}: begin (written by `{command}`) -->", f"<!-- {suite.name}: end -->"


def number(value: float | None) -> str:
    if value is None:
        return "missing"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(rows: list[Row], suite: Suite) -> str:
    """One line per figure; the ratio says how many times better holdfast is."""
    head = ["benchmark", "system", "median", "min – max", "rounds", "unit", "holdfast is"]
    shows_usage = any("server_cpu" in row for row in rows)
    lines = [[*head, "processors busy: server + workers (each run)"] if shows_usage else head]
    for row in rows:
        spread = f"{number(row['min'])} – {number(row['max'])}" if row["value"] is not None else ""
        system = row["system"] + (f" ({row['way']})" if row.get("way") else "")
        cells = [row["benchmark"], system, number(row["value"]), spread, str(row.get("repeats", "")), row["unit"]]
        lines.append([*cells, ratio(rows, row, suite), *([usage(row)] if shows_usage else [])])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)


def ratio(rows: list[Row], row: Row, suite: Suite) -> str:
    ours = value(rows, suite.bounds.get(row["benchmark"], row["benchmark"]), HOLDFAST)
    if row["system"] == HOLDFAST or not row["value"] or not ours:
        return ""
    times = ours / row["value"] if row["higher_is_better"] else row["value"] / ours
    return f"{times:.2f} × as fast" if times < 10 else f"{times:.0f} × as fast"


def usage(row: Row) -> str:
    """How many processors were busy meanwhile, and how long for each run: where the time went."""
    if "server_cpu" not in row:
        return ""
    server, workers = row["server_cpu"], row["worker_cpu"]
    each = 1e6 / row["value"]
    return f"{server:.2f} + {workers:.2f} ({server * each:,.0f} + {workers * each:,.0f} µs)"


def failures(rows: list[Row]) -> str:
    """What could not be measured, and why; empty when everything was."""
    lines = []
    for row in rows:
        for reason in row.get("failures", []):
            state = "missing" if row["value"] is None else "failed in part"
            lines.append(f"{row['benchmark']}, {row['system']}: {state}: {reason}")
    return "\n".join(lines)


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
    ours = find(rows, goal.ours, HOLDFAST)
    other = value(rows, *theirs) if isinstance(theirs, tuple) else theirs
    if ours is None or not other:
        return "not measured", "not judged"
    share = ours["value"] / other
    met = share >= goal.factor if goal.higher_is_better else share <= goal.factor
    text = f"{share:.2f} ×" if isinstance(theirs, tuple) else number(ours["value"])
    if isinstance(theirs, tuple) and theirs[1] == ANY_PEER:
        text += f" {find(rows, *theirs)['system']}"  # type: ignore[index]
    return text, "yes" if met else (goal.or_saturated and saturated(ours)) or "**no**"


def saturated(row: Row) -> str | None:
    """What had nothing left to give while the row was measured. Redis executes commands in one thread."""
    if "server_cpu" not in row:
        return None
    busy = f"{row['server_cpu']:.2f} + {row['worker_cpu']:.2f} processors"
    if row["store"] == "redis" and row["server_cpu"] >= SATURATED:
        return f"the server is the bound ({busy})"
    if row["server_cpu"] + row["worker_cpu"] >= SATURATED * (os.cpu_count() or 1):
        return f"the machine is the bound ({busy} of {os.cpu_count()})"
    return None


def rewrite_readme(rows: list[Row], suite: Suite, readme: Path | None = None) -> None:
    """Put a stored run's figures between the README's two marks."""
    readme = readme or README
    begin, end = marks(suite)
    text = readme.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{readme} has lost its marks; these two lines belong there:\n{begin}\n{end}")
    before, rest = text.split(begin)
    _, after = rest.split(end)
    parts = [rows[0]["machine"], table(rows, suite), goals(rows, suite)]
    if lost := failures(rows):
        parts.append("\n".join(f"- {line}" for line in lost.splitlines()))
    section = "\n\n".join(parts)
    readme.write_text(f"{before}{begin}\n\n{section}\n\n{end}{after}")
