"""The practical bound: group commit on SQLite with nothing around it. No engine, no product, no
safety net.

The same durable writes as holdfast's in the same order (accept, claim, a checkpoint after a step,
result), each awaited before the next; whatever waits while a transaction is written goes into the
next one."""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.systems.common import answer, keep_in_flight, latency, one_at_a_time, read_task, run

SCHEMA = (
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, state INTEGER, epoch INTEGER, input, result)",
    "CREATE TABLE checkpoints (run INTEGER, step INTEGER, value, PRIMARY KEY (run, step)) WITHOUT "
    "ROWID",
)
STATEMENTS = {
    "accept": "INSERT INTO runs VALUES (?, 0, 0, ?, NULL)",
    "claim": "UPDATE runs SET state = 1, epoch = epoch + 1 WHERE id = ? AND state = 0",
    "checkpoint": "INSERT INTO checkpoints VALUES (?, ?, ?)",
    "settle": "UPDATE runs SET state = 2, result = ? WHERE id = ? AND epoch = 1",
}

Waiting = tuple[str, tuple[Any, ...], "asyncio.Future[None] | None"]
encode = msgspec.json.Encoder().encode


class Bare:
    """One thread owns the connection and writes all that waits in one transaction."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._batches: queue.SimpleQueue[list[Waiting]] = queue.SimpleQueue()
        self._waiting: list[Waiting] = []
        self._busy = False
        threading.Thread(target=self._write, daemon=True).start()

    def post(self, name: str, values: tuple[Any, ...]) -> None:
        """Write it with whatever is sent next."""
        self._waiting.append((name, values, None))

    def send(self, name: str, values: tuple[Any, ...]) -> asyncio.Future[None]:
        future = self._loop.create_future()
        self._waiting.append((name, values, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._hand_over)
        return future

    def _hand_over(self) -> None:
        batch, self._waiting = self._waiting, []
        self._busy = bool(batch)
        if batch:
            self._batches.put(batch)

    def _written(self, batch: list[Waiting]) -> None:
        for _, _, future in batch:
            if future is not None:
                future.set_result(None)
        self._loop.call_soon(self._hand_over)

    def _write(self) -> None:
        cursor = self._connect().cursor()
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *SCHEMA):
            cursor.execute(statement)
        while True:
            batch = self._batches.get()
            cursor.execute("BEGIN IMMEDIATE")
            for name, statement in STATEMENTS.items():
                values = [values for kind, values, _ in batch if kind == name]
                if values:
                    cursor.executemany(statement, values)
            cursor.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._written, batch)


async def step(number: int) -> dict[str, Any]:
    return {"i": number, "ok": True}


async def one_run(bare: Bare, id: int, steps: int) -> None:
    await bare.send("accept", (id, b"null"))
    await bare.send("claim", (id,))
    for number in range(1, steps):
        await bare.send("checkpoint", (id, number, encode(await step(number))))
    result = encode(await step(steps))
    bare.post("checkpoint", (id, steps, result))
    await bare.send("settle", (result, id))


def connector(way: str, folder: str) -> Callable[[], Any]:
    path = os.path.join(folder, "bound.db")
    if way == "apsw":
        import apsw

        return lambda: apsw.Connection(path)
    return lambda: sqlite3.connect(path, isolation_level=None)


async def measure(task: dict[str, Any]) -> dict[str, Any]:
    bare = Bare(connector(task["way"], task["folder"]))
    ids = itertools.count(1)
    steps = 1 if task["benchmark"] == "bound_noop" else 5

    def execute() -> Any:
        return one_run(bare, next(ids), steps)

    await execute()
    if task["benchmark"].endswith("p50"):
        return latency(await one_at_a_time(task["count"], execute))
    return {"value": await keep_in_flight(task["count"], task["flight"], execute)}


def main() -> None:
    task = read_task()
    answer(**run(measure(task), fast=task.get("uvloop", False)))


if __name__ == "__main__":
    main()
