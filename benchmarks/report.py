"""Tables: on the terminal, and in the marked section of the README."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.catalogue import Suite
from benchmarks.judge import HOLDFAST, goals, number, value

README = Path(__file__).with_name("README.md")

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]


def marks(suite: Suite) -> tuple[str, str]:
    """What the suite's section of the README stands between."""
    command = "python -m benchmarks --servers --readme" if suite.driver else "python -m benchmarks --readme"
    return f"<!-- {suite.name}: begin (written by `{command}`) -->", f"<!-- {suite.name}: end -->"


def table(rows: list[Row], suite: Suite) -> str:
    """One line per figure; the ratio says how many times better holdfast is."""
    shown = [(head, cell) for head, cell in WHERE_TIME_WENT if any(cell(row) for row in rows)]
    head = ["benchmark", "system", "median", "min – max", "rounds", "unit", "holdfast is"]
    lines = [[*head, *(title for title, _ in shown)]]
    for row in rows:
        spread = f"{number(row['min'])} – {number(row['max'])}" if row["value"] is not None else ""
        system = row["system"] + (f" ({row['way']})" if row.get("way") else "")
        cells = [row["benchmark"], system, number(row["value"]), spread, str(row.get("repeats", "")), row["unit"]]
        lines.append([*cells, ratio(rows, row, suite), *(cell(row) for _, cell in shown)])
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


def occupied(row: Row) -> str:
    """What had how little left to give; only Redis has one thread for everybody."""
    if "machine_occupied" not in row:
        return ""
    thread = f"{row['server_occupied']:.2f}" if "server_occupied" in row else "–"
    return f"{thread}, {row['machine_occupied']:.2f} ({row['others_occupied']:.2f})"


WHERE_TIME_WENT: tuple[Column, ...] = (
    ("processors busy: server + workers (each run)", usage),
    ("occupied: server's thread, machine (others)", occupied),
)


def failures(rows: list[Row]) -> str:
    """What could not be measured, and why; empty when everything was."""
    lines = []
    for row in rows:
        for reason in row.get("failures", []):
            state = "missing" if row["value"] is None else "failed in part"
            lines.append(f"{row['benchmark']}, {row['system']}: {state}: {reason}")
    return "\n".join(lines)


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
