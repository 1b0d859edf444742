"""The table of the project's README: the most telling rows of a run on the servers.

Default settings come first, then tuned figures with their settings. It also has rows that are not
to holdfast's advantage: a second worker, the slowest pick-ups, the log."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any

from benchmarks.catalogue import HOLDFAST, LOGGING, OWN, TUNED
from benchmarks.judge import find
from benchmarks.settings import WORKER_DEFAULTS

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    title: str
    benchmark: str
    unit: str = ""
    system: str = HOLDFAST

    def figure(self, row: Row) -> str:
        return f"{rounded(row['value'])}{self.unit}"


LINES = (
    Line("no-op runs/s on Redis", "noop_redis"),
    Line("the same, two worker processes", "noop_2_redis"),
    Line("the same, one worker, log level INFO", "noop_redis", system=LOGGING),
    Line("no-op runs/s on PostgreSQL", "noop_postgres"),
    Line("the same, two worker processes", "noop_2_postgres"),
    Line("the same, one worker, log level INFO", "noop_postgres", system=LOGGING),
    Line("runs/s of five durable steps on PostgreSQL", "five_step_postgres"),
    Line("one run of five durable steps on PostgreSQL, p50", "five_step_p50_postgres", " ms"),
    Line("pick-up on an idle Redis, p50", "pickup_p50_redis", " ms"),
    Line("the same, p99", "pickup_p99_redis", " ms"),
    Line("pick-up on an idle PostgreSQL, p50", "pickup_p50_postgres", " ms"),
    Line("the same, p99", "pickup_p99_postgres", " ms"),
    Line("locks/s on Redis, 64 tasks", "lock_64_redis"),
)


PARAGRAPH = (
    "Beside its peers in one run of `make bench-peers`: one worker process unless said otherwise, "
    "`fsync` on, each peer in its best tuning. Default settings are those of `holdfast worker` "
    "({defaults}), except that runs are not logged unless a line says so. Tuned figures name their "
    "settings. A run keeps input, checkpoints, result and history; of the peers only DBOS and "
    "absurd do. Measured on {where}:"
)
LINK = "[all figures, conditions and what bounds them](benchmarks/README.md)."


def section(rows: list[Row]) -> str:
    """The paragraph that says what was measured, and the table."""
    machine = rows[0]["machine"]
    warnings = re.findall(r"(?:QUICK|BUSY): [^,]+", machine)
    where = "; ".join([", ".join(machine.split(", ")[:2]), *warnings])
    text = textwrap.fill(PARAGRAPH.format(defaults=WORKER_DEFAULTS, where=where), 100)
    return f"{text}\n{LINK}\n\n{table(rows)}"


def table(rows: list[Row]) -> str:
    lines = ["| | holdfast, default settings | tuned | peers |", "|---|---|---|---|"]
    for line in LINES:
        cells = (_default(rows, line), _tuned(rows, line), _peers(rows, line))
        lines.append(f"| {' | '.join((line.title, *cells))} |")
    return "\n".join(lines)


def _default(rows: list[Row], line: Line) -> str:
    row = find(rows, line.benchmark, line.system)
    return line.figure(row) if row else "missing"


def _tuned(rows: list[Row], line: Line) -> str:
    row = find(rows, line.benchmark, TUNED)
    return f"{line.figure(row)} ({row['way']})" if row and line.system == HOLDFAST else ""


def _peers(rows: list[Row], line: Line) -> str:
    """Best first."""
    if line.system != HOLDFAST:
        return ""
    peers = [
        row
        for row in rows
        if row["benchmark"] == line.benchmark
        and row["system"] not in OWN
        and row["value"] is not None
    ]
    peers.sort(key=lambda row: -row["value"] if row["higher_is_better"] else row["value"])
    return ", ".join(f"{row['system']} {line.figure(row)}" for row in peers)


def rounded(value: float) -> str:
    """Three digits: further ones differ from run to run."""
    digits = float(f"{value:.3g}")
    return f"{digits:,.0f}" if digits >= 100 else f"{digits:g}"
