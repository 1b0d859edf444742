"""Runs each measurement in a process of its own, in a folder of its own, for a bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks import catalogue, peers
from benchmarks.catalogue import Benchmark, Subject

TIMEOUT = 300.0
MODULES = {
    catalogue.HOLDFAST: "benchmarks.systems.holdfast",
    catalogue.DBOS: "benchmarks.systems.dbos",
    catalogue.DBOS_WAL: "benchmarks.systems.dbos",
    catalogue.BOUND: "benchmarks.systems.bound",
}

Row = dict[str, Any]


@dataclass
class Harness:
    """How to measure: sizes, repeats, event loop, and whether the peers are there."""

    repeat: int
    quick: bool
    uvloop: bool
    peers_missing: str | None
    say: Callable[[str], None]
    answers: dict[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)

    def measure(self, benchmark: Benchmark) -> list[Row]:
        """Interleaved: every system once, then again, so that a slow minute hits all of them."""
        for round_ in range(min(self.repeat, benchmark.repeats or self.repeat)):
            for subject in benchmark.subjects:
                for way in subject.ways:
                    self._measure_once(benchmark, subject, way, round_)
        return [row for subject in benchmark.subjects for row in self._rows(benchmark, subject)]

    def _measure_once(self, benchmark: Benchmark, subject: Subject, way: str, round_: int) -> None:
        if self.peers_missing and subject.system != catalogue.HOLDFAST:
            return
        title = f"{benchmark.name}, {subject.system}{f' ({way})' if way else ''}, round {round_ + 1}"
        try:
            found = self._ask(benchmark, subject, way)
        except (subprocess.SubprocessError, ValueError, IndexError) as error:
            self.say(f"{title}: FAILED: {_reason(error)}")
            return
        self.say(f"{title}: {found['value']:,.2f} {benchmark.unit}")
        self.answers.setdefault((benchmark.name, subject.system, way), []).append(found)

    def _ask(self, benchmark: Benchmark, subject: Subject, way: str) -> dict[str, Any]:
        python = sys.executable if subject.system == catalogue.HOLDFAST else str(peers.PYTHON)
        with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as folder:
            asked = {
                "benchmark": subject.row or benchmark.name,
                "way": way,
                "count": subject.quick if self.quick else subject.count,
                "flight": benchmark.flight,
                "folder": folder,
                "uvloop": self.uvloop,
                "wal": subject.system == catalogue.DBOS_WAL,
            }
            arguments = [python, "-m", MODULES[subject.system], json.dumps(asked)]
            done = subprocess.run(
                arguments, cwd=peers.ROOT, capture_output=True, text=True, check=True, timeout=TIMEOUT
            )
        return json.loads(done.stdout.strip().splitlines()[-1])

    def _rows(self, benchmark: Benchmark, subject: Subject) -> list[Row]:
        name = subject.row or benchmark.name
        best: Row | None = None
        for way in subject.ways:
            answers = self.answers.get((benchmark.name, subject.system, way), [])
            if answers:
                row = _row(name, subject.system, benchmark.unit, benchmark.higher_is_better, answers, "value")
                row["way"] = way
                best = row if best is None or _better(row, best) else best
        if best is None:
            missing = {"benchmark": name, "system": subject.system, "store": "sqlite", "value": None}
            return [{**missing, "unit": benchmark.unit, "higher_is_better": benchmark.higher_is_better}]
        rows = [best]
        answers = self.answers[benchmark.name, subject.system, best["way"]]
        for key, extra, unit in benchmark.extra:
            rows.append(_row(extra, subject.system, unit, False, answers, key))
        return rows


def _row(name: str, system: str, unit: str, higher_is_better: bool, answers: list[dict[str, Any]], key: str) -> Row:
    values = [answer[key] for answer in answers]
    return {
        "benchmark": name,
        "system": system,
        "store": "sqlite",
        "value": median(values),
        "unit": unit,
        "higher_is_better": higher_is_better,
        "min": min(values),
        "max": max(values),
        "repeats": len(values),
    }


def _better(row: Row, other: Row) -> bool:
    return (row["value"] > other["value"]) == row["higher_is_better"]


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return (error.stderr or "").strip().splitlines()[-1:][0] if error.stderr else str(error)
    return f"{type(error).__name__}: {error}"
