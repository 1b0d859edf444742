"""Tables: on the terminal, and in the marked sections of the READMEs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import summary
from benchmarks.catalogue import HOLDFAST, OWN, Suite
from benchmarks.judge import find, goals, number
from benchmarks.peers import ROOT

README = Path(__file__).with_name("README.md")
PROJECT_README = ROOT / "README.md"
SPEED = "speed"
"""The section of the project's README."""

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]


def marks(section: str) -> tuple[str, str]:
    """The lines that a section of a README stands between: a suite's name, or `speed`."""
    option = "" if section == "sqlite" else " --servers"
    command = f"python -m benchmarks{option} --readme"
    return f"<!-- {section}: begin (written by `{command}`) -->", f"<!-- {section}: end -->"


def table(rows: list[Row], suite: Suite) -> str:
    """One line per figure; the ratio is that of holdfast with default settings."""
    columns = [(head, cell) for head, cell in WHERE_TIME_WENT if any(cell(row) for row in rows)]
    head = ["benchmark", "system", "median", "min – max", "rounds", "unit", "holdfast is"]
    lines = [[*head, *(title for title, _ in columns)]]
    for row in rows:
        spread = f"{number(row['min'])} – {number(row['max'])}" if row["value"] is not None else ""
        system = row["system"] + (f" ({row['way']})" if row.get("way") else "")
        cells = [
            row["benchmark"],
            system,
            number(row["value"]),
            spread,
            str(row.get("repeats", "")),
            row["unit"],
        ]
        lines.append([*cells, ratio(rows, row, suite), *(cell(row) for _, cell in columns)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)


def ratio(rows: list[Row], row: Row, suite: Suite) -> str:
    ours = find(rows, suite.bounds.get(row["benchmark"], row["benchmark"]), HOLDFAST)
    if row["system"] in OWN or not row["value"] or not ours:
        return ""
    times = ours["value"] / row["value"]
    times = times if row["higher_is_better"] else 1 / times
    return f"{times:.2f} × as fast" if times < 10 else f"{times:.0f} × as fast"


def usage(row: Row) -> str:
    """How many processors were busy meanwhile, and how long for each run: where the time went."""
    if "server_cpu" not in row:
        return ""
    server, workers = row["server_cpu"], row["worker_cpu"]
    per_run = 1e6 / row["value"]
    micros = f"{server * per_run:,.0f} + {workers * per_run:,.0f} µs"
    return f"{server:.2f} + {workers:.2f} ({micros})"


def occupied(row: Row) -> str:
    """How busy the server's thread and the machine were; only Redis has one thread for all."""
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
        lost = row["value"] is None
        reasons = row.get("failures") or (["no such figure in its answer"] if lost else [])
        state = "missing" if lost else "failed in part"
        name = f"{row['benchmark']}, {row['system']}"
        lines += [f"{name}: {state}: {reason}" for reason in reasons]
    return "\n".join(lines)


def section(rows: list[Row], suite: Suite) -> str:
    """Of benchmarks/README.md: the machine, all rows, the goals, and what failed."""
    machine = textwrap.fill(rows[0]["machine"], 100, break_on_hyphens=False)
    parts = [machine, table(rows, suite), goals(rows, suite)]
    if lost := failures(rows):
        parts.append("\n".join(f"- {line}" for line in lost.splitlines()))
    return "\n\n".join(parts)


def rewrite_readmes(rows: list[Row], suite: Suite) -> list[Path]:
    """Put a stored run's figures between the marks, and return the files that were written."""
    replace_section(README, suite.name, section(rows, suite))
    if not suite.driver:
        return [README]
    replace_section(PROJECT_README, SPEED, summary.section(rows))
    return [README, PROJECT_README]


def replace_section(readme: Path, name: str, text: str) -> None:
    begin, end = marks(name)
    old = readme.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        raise SystemExit(f"{readme} has lost its marks; it needs these two lines:\n{begin}\n{end}")
    before, remainder = old.split(begin)
    _, after = remainder.split(end)
    readme.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
