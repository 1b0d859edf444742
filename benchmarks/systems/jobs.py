"""What the systems on a server share: a job's body, and the verbs that the driver calls each system
by.

A system is a module that is started as `python -m benchmarks.systems.NAME VERB COUNT`. It knows
some of these verbs:

    prepare     make tables, queues and the like on the empty store
    submit      accept COUNT no-op jobs, as fast as the system can: in bulk, or many at once
    single      accept COUNT no-op jobs, each answered before the next is sent
    submit_five accept COUNT jobs of five durable steps
    work        execute jobs until killed
    pickup      submit COUNT jobs to an idle worker in another process, one at a time
    five_p50    execute COUNT jobs of five durable steps, one at a time
    five_runs   execute COUNT jobs of five durable steps by direct calls, without a queue
    locks       acquire and release COUNT times, FLIGHT at once

and answers with one line of JSON, whose `value` is a rate or a latency. Standard library only.
"""

from __future__ import annotations

import asyncio
import inspect
import mmap
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.systems.common import answer, latency, run

STORE = os.environ.get("BENCH_STORE", "")
FOLDER = Path(os.environ.get("BENCH_FOLDER", "."))
WAY = os.environ.get("BENCH_WAY", "")
FLIGHT = int(os.environ.get("BENCH_FLIGHT", "256"))
UVLOOP = os.environ.get("BENCH_UVLOOP", "1") == "1"
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY") or 0)
"""Runs that holdfast's worker has in flight at once; 0 leaves its default."""

SLOTS = 8
WARM_UP = 3
"""Pick-ups that are not counted: the first includes the worker's start."""
PICKUP_TIMEOUT = 40.0


class Counter:
    """How many jobs were executed: one number per worker process in a file that all of them have in
    memory."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.path = folder / "executed"
        self._slot = int(os.environ.get("BENCH_SLOT", "0")) * 8
        self._lock = threading.Lock()
        self._numbers: mmap.mmap | None = None
        self._mine = 0

    def reset(self) -> None:
        self.path.write_bytes(bytes(8 * SLOTS))

    def add(self) -> None:
        with self._lock:
            self._mine += 1
            struct.pack_into("<Q", self._open(), self._slot, self._mine)

    def total(self) -> int:
        return sum(struct.unpack(f"<{SLOTS}Q", self._open()[:]))

    def _open(self) -> mmap.mmap:
        if self._numbers is None:
            with open(self.path, "r+b") as file:
                self._numbers = mmap.mmap(file.fileno(), 8 * SLOTS)
        return self._numbers


executed = Counter()


def done(submitted: float | None = None) -> None:
    """The body of every job. `submitted` is when the caller submitted it: the monotonic clock is
    the same in all processes."""
    if submitted is not None:
        now = time.perf_counter()
        with open(FOLDER / "latencies", "a") as file:
            file.write(f"{now - submitted:.9f}\n")
    executed.add()


def rate(count: int, start: float) -> dict[str, float]:
    return {"value": count / (time.perf_counter() - start)}


async def in_lanes(
    count: int, flight: int, call: Callable[[int], Awaitable[Any]]
) -> dict[str, float]:
    """Do something `count` times, in `flight` lanes at once; `call` gets its lane's number."""
    numbers = iter(range(count))

    async def lane(number: int) -> None:
        for _ in numbers:
            await call(number)

    start = time.perf_counter()
    await asyncio.gather(*(lane(number) for number in range(min(flight, count))))
    return rate(count, start)


async def pickups(count: int, submit: Callable[[float], Awaitable[Any]]) -> dict[str, float]:
    """From before the submit on an idle system until the job's first line in the worker's
    process."""
    for number in range(1, WARM_UP + count + 1):
        # a random pause, so that the submits do not fall into step with a poll interval
        await asyncio.sleep(random.uniform(0.05, 0.1))
        await submit(time.perf_counter())
        await asyncio.to_thread(_wait_for, number)
    return latency([float(line) for line in (FOLDER / "latencies").read_text().split()][WARM_UP:])


def blocking_pickups(count: int, submit: Callable[[float], Any]) -> dict[str, float]:
    async def call(submitted: float) -> None:
        submit(submitted)

    return asyncio.run(pickups(count, call))


def _wait_for(number: int) -> None:
    deadline = time.monotonic() + PICKUP_TIMEOUT
    while executed.total() < number:
        if time.monotonic() > deadline:
            raise RuntimeError(f"job {number} did not start within {PICKUP_TIMEOUT:.0f} s")
        time.sleep(0.002)


def become(*command: str) -> None:
    """Replace this process by a program of its environment: how systems with a command line of
    their own run their workers."""
    os.execv(sys.executable, [sys.executable, "-m", *command])


def serve(**verbs: Callable[[int], Any]) -> None:
    """Do what the command line asks for, and print the answer."""
    verb, count = sys.argv[1], int(sys.argv[2])
    figures = verbs[verb](count)
    if inspect.iscoroutine(figures):
        figures = run(figures, fast=UVLOOP)
    answer(**(figures or {}))
    sys.stdout.flush()
    os._exit(0)  # threads and connections of the system would only take their time to end
