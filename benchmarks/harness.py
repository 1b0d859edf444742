"""Runs each measurement in a process of its own, in a folder of its own, for a bounded time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks import peers
from benchmarks.catalogue import Benchmark, Extra, Subject, Suite

TIMEOUT = 120.0
USAGE = ("server_cpu", "worker_cpu", "server_occupied", "machine_occupied", "others_occupied")
"""What an answer may say besides its figure: processors that were busy or occupied."""

Row = dict[str, Any]
Key = tuple[str, str, str]
"""Benchmark, system, way."""
Ways = dict[str, list[dict[str, Any]]]
"""What was answered, round after round, for each way to use a system."""


class Failed(Exception):
    """A measuring process gave no figure; the text says why."""


@dataclass
class Harness:
    """How to measure: sizes, rounds, and what is missing."""

    suite: Suite
    repeat: int
    bounded: bool
    """Whether a benchmark's time limit may end it before the last round."""
    quick: bool
    missing: Mapping[str, str]
    """Environments and servers that are not there, and why."""
    servers: Mapping[str, Mapping[str, Any]]
    say: Callable[[str], None]
    answers: dict[Key, list[dict[str, Any]]] = field(default_factory=dict)
    failures: dict[Key, list[str]] = field(default_factory=dict)

    def measure(self, benchmark: Benchmark) -> list[Row]:
        """Interleaved: every system once, then again, so that a slow minute hits all of them."""
        start = time.monotonic()
        for round_ in range(self.repeat):
            if self.bounded and self._would_exceed(benchmark, time.monotonic() - start, round_):
                self.say(
                    f"{benchmark.name}: {round_} of {self.repeat} rounds fit into "
                    f"{benchmark.seconds:.0f} s"
                )
                break
            for subject in benchmark.subjects:
                for way in subject.ways:
                    self._measure_once(benchmark, subject, way, round_ + 1)
        return [row for subject in benchmark.subjects for row in self._rows(benchmark, subject)]

    @staticmethod
    def _would_exceed(benchmark: Benchmark, passed: float, rounds: int) -> bool:
        return rounds > 0 and passed + passed / rounds > benchmark.seconds

    def _measure_once(self, benchmark: Benchmark, subject: Subject, way: str, round_: int) -> None:
        key = (benchmark.name, subject.system.name, way)
        system = f"{subject.system.name} ({way})" if way else subject.system.name
        title = f"{benchmark.name}, {system}, round {round_}"
        try:
            answer = self._ask(benchmark, subject, way)
        except Failed as error:
            self.say(f"{title}: FAILED: {error}")
            self.failures.setdefault(key, []).append(str(error))
            return
        self.say(f"{title}: {answer['value']:,.2f} {benchmark.unit}")
        self.answers.setdefault(key, []).append(answer)

    def _ask(self, benchmark: Benchmark, subject: Subject, way: str) -> dict[str, Any]:
        system = subject.system
        environment = peers.OURS if way and way in system.our_ways else system.environment
        for needed in (environment, benchmark.store):
            if needed in self.missing:
                raise Failed(f"{needed} is missing: {self.missing[needed]}")
        command = peers.command(environment, system.module)
        with tempfile.TemporaryDirectory(
            prefix="holdfast-benchmark-", ignore_cleanup_errors=True
        ) as folder:
            task = {
                "benchmark": subject.row or benchmark.name,
                "way": way,
                "count": subject.quick if self.quick else subject.count,
                "flight": benchmark.flight,
                "folder": folder,
                **benchmark.options,
                **subject.options_of(way),
            }
            if self.suite.driver:
                task |= {"command": command, "environment": peers.variables(environment)}
                task["server"] = self.servers[benchmark.store]
                command = [sys.executable, "-m", self.suite.driver]
            output = ask_process([*command, json.dumps(task)])
        return parse(output, ["value"])

    def _rows(self, benchmark: Benchmark, subject: Subject) -> list[Row]:
        system, store = subject.system.name, benchmark.store
        names = [
            Extra(
                "value", subject.row or benchmark.name, benchmark.unit, benchmark.higher_is_better
            )
        ]
        names += [extra for extra in benchmark.extra if subject.row is None]
        reasons = self._reasons(benchmark, subject)
        rows = [
            _row(extra, system, store, self._answered(benchmark, subject, extra)) for extra in names
        ]
        return [{**row, "failures": reasons} if reasons else row for row in rows]

    def _answered(self, benchmark: Benchmark, subject: Subject, extra: Extra) -> Ways:
        return {
            way: answers
            for way in subject.ways
            if (answers := self.answers.get((benchmark.name, subject.system.name, way)))
            and all(extra.key in answer for answer in answers)
        }

    def _reasons(self, benchmark: Benchmark, subject: Subject) -> list[str]:
        return [
            f"{way}: {reason}" if way else reason
            for way in subject.ways
            for reason in dict.fromkeys(
                self.failures.get((benchmark.name, subject.system.name, way), [])
            )
        ]


def ask_process(command: list[str]) -> str:
    """The output of a process. It has its own process group: if it hangs, it is killed with all its
    children."""
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
        last = (errors.strip().splitlines() or ["no output"])[-1]
        raise Failed(f"exit status {process.returncode}: {last}")
    return output


def _end_group(process: subprocess.Popen[str]) -> None:
    """Whatever is left of the process and its children, after an answer as after a timeout or
    Ctrl-C."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def parse(output: str, keys: list[str]) -> dict[str, Any]:
    """The last line of output: a JSON object with at least these numbers."""
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1])
        if all(isinstance(answer[key], int | float) for key in keys):
            return answer
    except (ValueError, IndexError, KeyError, TypeError):
        pass
    raise Failed(f"its answer is not understood: {(lines or ['nothing'])[-1][:200]}")


def _values(answers: list[dict[str, Any]], key: str) -> list[float]:
    return [answer[key] for answer in answers]


def _row(extra: Extra, system: str, store: str, ways: Ways) -> Row:
    """The way with the best median counts; the medians of the others are kept in the row."""
    row = {
        "benchmark": extra.row,
        "system": system,
        "store": store,
        "value": None,
        "unit": extra.unit,
        "higher_is_better": extra.higher_is_better,
    }
    if not ways:
        return row
    medians = {way: median(_values(answers, extra.key)) for way, answers in ways.items()}
    way = (max if extra.higher_is_better else min)(medians, key=medians.__getitem__)
    answers = ways[way]
    values = _values(answers, extra.key)
    row |= {
        "value": medians[way],
        "min": min(values),
        "max": max(values),
        "repeats": len(values),
        "values": values,
    }
    row |= {"way": way, "ways": medians} if len(medians) > 1 else {"way": way}
    if extra.key == "value":
        row |= {
            key: median(_values(answers, key))
            for key in USAGE
            if all(key in answer for answer in answers)
        }
    return row
