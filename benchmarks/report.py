"""Tables: on the terminal, and in the marked section of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import catalogue
from benchmarks.catalogue import GOALS, Goal

README = Path(__file__).with_name("README.md")
BEGIN = "<!-- figures: begin (written by `python -m benchmarks --readme`) -->"
END = "<!-- figures: end -->"

Row = dict[str, Any]


def number(value: float | None) -> str:
    if value is None:
        return "missing"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(rows: list[Row]) -> str:
    """One line per figure; the ratio says how many times better holdfast is."""
    lines = [("benchmark", "system", "median", "min – max", "rounds", "unit", "holdfast is")]
    for row in rows:
        spread = f"{number(row['min'])} – {number(row['max'])}" if row["value"] is not None else ""
        system = row["system"] + (f" ({row['way']})" if row.get("way") else "")
        rounds = str(row.get("repeats", ""))
        lines.append((row["benchmark"], system, number(row["value"]), spread, rounds, row["unit"], ratio(rows, row)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)


OURS = {
    "bound_noop": "noop_runs",
    "bound_five_step": "five_step_runs",
    "bound_five_step_p50": "five_step_p50",
}


def ratio(rows: list[Row], row: Row) -> str:
    ours = value(rows, OURS.get(row["benchmark"], row["benchmark"]), catalogue.HOLDFAST)
    if row["system"] == catalogue.HOLDFAST or not row["value"] or not ours:
        return ""
    times = ours / row["value"] if row["higher_is_better"] else row["value"] / ours
    return f"{times:.2f} × as fast" if times < 10 else f"{times:.0f} × as fast"


def failures(rows: list[Row]) -> str:
    """What could not be measured, and why; empty when everything was."""
    lines = []
    for row in rows:
        for reason in row.get("failures", []):
            state = "missing" if row["value"] is None else "failed in part"
            lines.append(f"{row['benchmark']}, {row['system']}: {state}: {reason}")
    return "\n".join(lines)


def value(rows: list[Row], benchmark: str, system: str) -> float | None:
    for row in rows:
        if row["benchmark"] == benchmark and row["system"] == system:
            return row["value"]
    return None


def goals(rows: list[Row]) -> str:
    """Each goal with what was reached, and the same against DBOS on a file that was set to WAL by hand."""
    lines = ["| goal | reached | met | against DBOS, file set to WAL |", "|---|---|---|---|"]
    for goal in GOALS:
        reached, met = _judge(rows, goal, goal.theirs)
        beside = ""
        if isinstance(goal.theirs, tuple) and goal.theirs[1] == catalogue.DBOS:
            beside, _ = _judge(rows, goal, (goal.theirs[0], catalogue.DBOS_WAL))
        lines.append(f"| {goal.text} | {reached} | {met} | {beside} |")
    return "\n".join(lines)


def _judge(rows: list[Row], goal: Goal, theirs: tuple[str, str] | float) -> tuple[str, str]:
    ours = value(rows, goal.ours, catalogue.HOLDFAST)
    other = value(rows, *theirs) if isinstance(theirs, tuple) else theirs
    if ours is None or not other:
        return "not measured", "not judged"
    share = ours / other
    met = share >= goal.factor if goal.higher_is_better else share <= goal.factor
    text = f"{share:.2f} ×" if isinstance(theirs, tuple) else number(ours)
    return text, "yes" if met else "**no**"


def rewrite_readme(rows: list[Row], readme: Path | None = None) -> None:
    """Put a stored run's figures between the README's two marks."""
    readme = readme or README
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{readme} has lost its marks; these two lines belong there:\n{BEGIN}\n{END}")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    parts = [rows[0]["machine"], table(rows), goals(rows)]
    if lost := failures(rows):
        parts.append("\n".join(f"- {line}" for line in lost.splitlines()))
    section = "\n\n".join(parts)
    readme.write_text(f"{before}{BEGIN}\n\n{section}\n\n{END}{after}")
