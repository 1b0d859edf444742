"""Runs each measurement in a process of its own, in a folder of its own, for a bounded time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks import catalogue, peers
from benchmarks.catalogue import Benchmark, Subject

TIMEOUT = 120.0
MODULES = {
    catalogue.HOLDFAST: "benchmarks.systems.holdfast",
    catalogue.DBOS: "benchmarks.systems.dbos",
    catalogue.DBOS_WAL: "benchmarks.systems.dbos",
    catalogue.BOUND: "benchmarks.systems.bound",
}

Row = dict[str, Any]
Place = tuple[str, str, str]
"""Benchmark, system, way."""


class Failed(Exception):
    """A measuring process gave no figure; the text says why."""


@dataclass
class Harness:
    """How to measure: sizes, rounds, event loop, and whether the peers are there."""

    repeat: int
    bounded: bool
    """Whether a benchmark's time limit may end it before the last round."""
    quick: bool
    uvloop: bool
    peers_missing: str | None
    say: Callable[[str], None]
    answers: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    failures: dict[Place, list[str]] = field(default_factory=dict)

    def measure(self, benchmark: Benchmark) -> list[Row]:
        """Interleaved: every system once, then again, so that a slow minute hits all of them."""
        start = time.monotonic()
        for round_ in range(self.repeat):
            if self.bounded and self._would_exceed(benchmark, time.monotonic() - start, round_):
                self.say(f"{benchmark.name}: {round_} of {self.repeat} rounds fit into {benchmark.seconds:.0f} s")
                break
            for subject in benchmark.subjects:
                for way in subject.ways:
                    self._measure_once(benchmark, subject, way, round_)
        return [row for subject in benchmark.subjects for row in self._rows(benchmark, subject)]

    @staticmethod
    def _would_exceed(benchmark: Benchmark, passed: float, rounds: int) -> bool:
        return rounds > 0 and passed + passed / rounds > benchmark.seconds

    def _measure_once(self, benchmark: Benchmark, subject: Subject, way: str, round_: int) -> None:
        place = (benchmark.name, subject.system, way)
        title = f"{benchmark.name}, {subject.system}{f' ({way})' if way else ''}, round {round_ + 1}"
        try:
            found = self._ask(benchmark, subject, way)
        except Failed as error:
            self.say(f"{title}: FAILED: {error}")
            self.failures.setdefault(place, []).append(str(error))
            return
        self.say(f"{title}: {found['value']:,.2f} {benchmark.unit}")
        self.answers.setdefault(place, []).append(found)

    def _ask(self, benchmark: Benchmark, subject: Subject, way: str) -> dict[str, Any]:
        ours = subject.system == catalogue.HOLDFAST or way == "sqlite3"
        if self.peers_missing and not ours:
            raise Failed(f"the peers' environment is missing: {self.peers_missing}")
        with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-", ignore_cleanup_errors=True) as folder:
            asked = {
                "benchmark": subject.row or benchmark.name,
                "way": way,
                "count": subject.quick if self.quick else subject.count,
                "flight": benchmark.flight,
                "folder": folder,
                "uvloop": self.uvloop,
                "wal": subject.system == catalogue.DBOS_WAL,
            }
            python = sys.executable if ours else str(peers.PYTHON)
            output = ask_process([python, "-m", MODULES[subject.system], json.dumps(asked)])
        return parse(output, ["value", *(extra.key for extra in benchmark.extra)])

    def _rows(self, benchmark: Benchmark, subject: Subject) -> list[Row]:
        name = subject.row or benchmark.name
        best: Row | None = None
        for way in subject.ways:
            answers = self.answers.get((benchmark.name, subject.system, way), [])
            if answers:
                row = _row(name, subject.system, benchmark.unit, benchmark.higher_is_better, answers, "value")
                row["way"] = way
                best = row if best is None or _better(row, best) else best
        reasons = self._reasons(benchmark, subject)
        if best is None:
            empty = [_missing(name, subject.system, benchmark.unit, benchmark.higher_is_better)]
            empty += [_missing(e.row, subject.system, e.unit, e.higher_is_better) for e in benchmark.extra]
            return [{**row, "failures": reasons} for row in empty]
        answers = self.answers[benchmark.name, subject.system, best["way"]]
        if reasons:
            best["failures"] = reasons
        further = [_row(e.row, subject.system, e.unit, e.higher_is_better, answers, e.key) for e in benchmark.extra]
        return [best, *further]

    def _reasons(self, benchmark: Benchmark, subject: Subject) -> list[str]:
        return [
            f"{way}: {reason}" if way else reason
            for way in subject.ways
            for reason in dict.fromkeys(self.failures.get((benchmark.name, subject.system, way), []))
        ]


def ask_process(command: list[str]) -> str:
    """What a process prints. It has a group of its own: if it hangs, it ends with all that it started."""
    try:
        process = subprocess.Popen(
            command,
            cwd=peers.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise Failed(f"can't start {command[0]}: {error}") from error
    try:
        output, errors = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer within {TIMEOUT:.0f} s") from None
    finally:
        _end_group(process)
    if process.returncode:
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        raise Failed(f"exit status {process.returncode}: {last}")
    return output


def _end_group(process: subprocess.Popen[str]) -> None:
    """Whatever is left of the process and its children, after an answer as after a timeout or Ctrl-C."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def parse(output: str, keys: list[str]) -> dict[str, Any]:
    """The last line of output: a JSON object with at least these numbers."""
    lines = output.strip().splitlines()
    try:
        found = json.loads(lines[-1])
        if all(isinstance(found[key], int | float) for key in keys):
            return found
    except (ValueError, IndexError, KeyError, TypeError):
        pass
    raise Failed(f"its answer is not understood: {(lines or ['nothing'])[-1][:200]}")


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


def _missing(name: str, system: str, unit: str, higher_is_better: bool) -> Row:
    return {
        "benchmark": name,
        "system": system,
        "store": "sqlite",
        "value": None,
        "unit": unit,
        "higher_is_better": higher_is_better,
    }


def _better(row: Row, other: Row) -> bool:
    return (row["value"] > other["value"]) == row["higher_is_better"]
