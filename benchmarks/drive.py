"""One measurement of one system on one server: clean the store, start the system's processes,
watch, stop them.

Started by the harness as a process of its own; the system's processes belong to its group and end
with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.bounds import Bounds
from benchmarks.stores import Server, cpu_seconds, family, memory
from benchmarks.systems.common import answer, read_task
from benchmarks.systems.jobs import Counter
from holdfast import Holdfast
from holdfast.ports.store import RunFilter

TICK = 0.004
STALLED = 30.0
"""Seconds without a single job after which a worker is given up."""
OVER = ("succeeded", "failed", "cancelled")


class Driver:
    """A system's processes for one measurement."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.count: int = task["count"]
        self.folder = Path(task["folder"])
        self.server = Server(**task["server"])
        self.executed = Counter(self.folder)
        self._environment = {
            **os.environ,
            **task["environment"],
            "BENCH_STORE": self.server.url,
            "BENCH_FOLDER": str(self.folder),
            "BENCH_WAY": task["way"],
            "BENCH_FLIGHT": str(task["flight"]),
            "BENCH_UVLOOP": "1" if task.get("uvloop", True) else "0",
            "BENCH_CONCURRENCY": str(task.get("concurrency", "")),
            **task.get("variables", {}),
        }

    def begin(self) -> None:
        self.server.clean()
        if self.task.get("prepares"):
            self.ask("prepare")

    def ask(self, verb: str, count: int = 0) -> dict[str, Any]:
        """The system's answer to a verb."""
        process = subprocess.run(
            self._command(verb, count),
            env=self._environment,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if process.returncode:
            raise RuntimeError(f"{verb}: {_last_line(process.stderr)}")
        return json.loads(process.stdout.strip().splitlines()[-1])

    @contextmanager
    def working(self, workers: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Run this many worker processes; nothing has been executed yet."""
        self.executed.reset()
        with open(self.folder / "log", "wb") as log:
            processes = [
                subprocess.Popen(
                    self._command("work", 0),
                    env={**self._environment, "BENCH_SLOT": str(slot)},
                    stdout=log,
                    stderr=log,
                )
                for slot in range(workers)
            ]
        try:
            yield processes
        finally:
            _stop(processes)

    def check(self, processes: list[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            if process.poll() is not None:
                raise RuntimeError(
                    "a worker ended: "
                    f"{_last_line((self.folder / 'log').read_text(errors='replace'))}"
                )

    def _command(self, verb: str, count: int) -> list[str]:
        return [*self.task["command"], verb, str(count)]


class Watch:
    """Waits until all jobs are executed, and measures from the first one that it sees."""

    def __init__(self, driver: Driver, processes: list[subprocess.Popen[bytes]]) -> None:
        self._driver = driver
        self._processes = processes
        self._pids = {process.pid for process in processes}

    def until_executed(self, count: int) -> None:
        before, self.executed = 0, 0
        last = time.perf_counter()
        while before < count:
            total, now = self._driver.executed.total(), time.perf_counter()
            if total and not self.executed:
                self.start, self.executed, self._cpu = now, total, self._usage()
                self._bounds = Bounds(self._driver.server.only_thread)
            if total > before:
                before, last = total, now
            elif now - last > STALLED:
                raise RuntimeError(f"no job for {STALLED:.0f} s after {total:,} of {count:,}")
            self._driver.check(self._processes)
            self._tick()
        self.end = last

    def until_settled(self, pending: Callable[[], int]) -> None:
        """Wait until no job is pending. The end is the moment at which the query that returned none
        began."""
        deadline = time.perf_counter() + STALLED
        while self.end < deadline:
            self.end = time.perf_counter()
            if not pending():
                return
            self._tick()
        raise RuntimeError(f"executed, but not settled in the store within {STALLED:.0f} s")

    def figures(self, count: int) -> dict[str, float]:
        seconds = self.end - self.start
        spent = [after - before for before, after in zip(self._cpu, self._usage(), strict=True)]
        busy = {"server_cpu": spent[0] / seconds, "worker_cpu": spent[1] / seconds}
        return {
            "value": (count - self.executed) / seconds,
            **busy,
            **self._bounds.shares(sum(spent)),
        }

    def _tick(self) -> None:
        if self.executed:
            self._bounds.look()
        time.sleep(TICK)

    def _usage(self) -> tuple[float, float, float]:
        """Seconds of processor time of the server, the workers and this process."""
        workers = (cpu_seconds(pid) for top in self._pids for pid in family(top))
        return self._driver.server.cpu() or 0.0, sum(workers), time.process_time()


def drain(driver: Driver) -> dict[str, Any]:
    """Jobs per second, from the first until the last one is done and settled in the store."""
    driver.begin()
    submitted = driver.ask(driver.task.get("submit", "submit"), driver.count)
    driver.server.settle()
    with driver.working(driver.task.get("workers", 1)) as processes, pending_of(driver) as pending:
        watch = Watch(driver, processes)
        watch.until_executed(driver.count)
        watch.until_settled(pending)
        figures = watch.figures(driver.count)
    return {**figures, "submit": submitted["value"]}


def pickup(driver: Driver) -> dict[str, Any]:
    driver.begin()
    with driver.working(1):
        return driver.ask("pickup", driver.count)


def start(driver: Driver) -> dict[str, Any]:
    """Seconds from the start of the worker's process until its first job runs, and its memory
    then."""
    driver.begin()
    driver.ask("single", driver.count)
    begun = time.perf_counter()
    with driver.working(1) as [process]:
        while not driver.executed.total():
            driver.check([process])
            time.sleep(0.001)
        seconds = time.perf_counter() - begun
        time.sleep(0.5)
        return {"value": seconds, "rss": sum(memory(pid) for pid in family(process.pid))}


def ask(driver: Driver) -> dict[str, Any]:
    """What the system measures by itself, in one process."""
    driver.begin()
    driver.executed.reset()
    return driver.ask(driver.task["verb"], driver.count)


@contextmanager
def pending_of(driver: Driver) -> Iterator[Callable[[], int]]:
    """How many jobs are not settled in the store. Where a store does not tell, executed has to be
    enough."""
    sql = driver.task.get("pending")
    if sql == "holdfast":
        with asyncio.Runner() as runner:
            app = Holdfast(driver.server.url, worker=False)
            runner.run(app.open())
            yield lambda: runner.run(_unfinished(app))
            runner.run(app.close())
    elif sql:
        with psycopg.connect(driver.server.url, autocommit=True) as connection:
            yield lambda: connection.execute(sql).fetchone()[0]
    else:
        yield lambda: 0


async def _unfinished(app: Holdfast) -> int:
    states = await app.store.count(RunFilter())
    return sum(count for state, count in states.items() if state not in OVER)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill the workers: the store is cleaned before the next measurement anyway."""
    for process in processes:
        for pid in reversed(family(process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


KINDS = {kind.__name__: kind for kind in (drain, pickup, start, ask)}

if __name__ == "__main__":
    task = read_task()
    answer(**KINDS[task["kind"]](Driver(task)))
