"""DBOS on SQLite, in the ways its users have: queue, threads, and one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient

from benchmarks.systems.common import answer, keep_in_flight, latency, one_at_a_time, task

THREADS = int(os.environ.get("TH","16"))
"""More threads only wait longer for SQLite's one writer."""

QUEUE = "benchmark"
RESULT = {"i": 1, "ok": True}
started: list[float] = []
begun = threading.Event()


@DBOS.workflow(name="noop")
def noop() -> dict[str, Any]:
    started.append(time.perf_counter())
    begun.set()
    return RESULT


@DBOS.workflow(name="noop_async")
async def noop_async() -> dict[str, Any]:
    return RESULT


@DBOS.step(name="step")
def step(number: int) -> dict[str, Any]:
    return {"i": number, "ok": True}


@DBOS.step(name="step_async")
async def step_async(number: int) -> dict[str, Any]:
    return {"i": number, "ok": True}


@DBOS.workflow(name="five")
def five() -> dict[str, Any]:
    result = {}
    for number in range(5):
        result = step(number)
    return result


@DBOS.workflow(name="five_async")
async def five_async() -> dict[str, Any]:
    result = {}
    for number in range(5):
        result = await step_async(number)
    return result


def threaded(count: int, call: Any) -> float:
    """Calls per second from a few threads."""
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: call(), range(count)))
    return count / (time.perf_counter() - start)


def queued(count: int, flight: int) -> float:
    """Enqueued by threads, executed by the queue's dispatcher, awaited; at most `flight` at once."""
    room = threading.Semaphore(flight)

    def enqueue(_: int) -> Any:
        room.acquire()
        return DBOS.enqueue_workflow(QUEUE, noop)

    def wait(handle: Any) -> None:
        handle.get_result(polling_interval_sec=0.02)
        room.release()

    start = time.perf_counter()
    with ThreadPoolExecutor(4) as clients, ThreadPoolExecutor(THREADS) as waiters:
        list(waiters.map(wait, clients.map(enqueue, range(count))))
    return count / (time.perf_counter() - start)


def submit(url: str, count: int) -> float:
    """Enqueued by a client with nobody executing: DBOS has no call that takes many."""
    client = DBOSClient(system_database_url=url)
    start = time.perf_counter()
    for _ in range(count):
        client.enqueue({"workflow_name": "noop", "queue_name": QUEUE, "app_version": "1"})
    return count / (time.perf_counter() - start)


def pickup(count: int) -> list[float]:
    """From before the enqueue on an idle system until the workflow's first line."""
    seconds = []
    for _ in range(count):
        time.sleep(0.05)
        begun.clear()
        asked = time.perf_counter()
        DBOS.enqueue_workflow(QUEUE, noop)
        begun.wait(30)
        seconds.append(started[-1] - asked)
    return seconds


def sequential(count: int, call: Any) -> list[float]:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure(name: str, way: str, count: int, flight: int, url: str) -> dict[str, Any]:
    workflow, workflow_async = (noop, noop_async) if name == "noop_runs" else (five, five_async)
    if name in ("noop_runs", "five_step_runs"):
        if way == "queue":
            return {"value": queued(count, flight)}
        if way == "threads":
            return {"value": threaded(count, workflow)}
        return {"value": asyncio.run(keep_in_flight(count, flight, workflow_async))}
    if name == "five_step_p50":
        if way == "threads":
            return latency(sequential(count, five))
        return latency(asyncio.run(one_at_a_time(count, five_async)))
    if name == "submit":
        return {"value": submit(url, count)}
    return latency(pickup(count))


def main() -> None:
    asked = task()
    path = Path(asked["folder"], "dbos.sqlite")
    if asked.get("wal"):
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    url = f"sqlite:///{path}"
    logging.disable(logging.WARNING)
    DBOS(
        config={
            "name": "benchmark",
            "system_database_url": url,
            "log_level": "ERROR",
            "application_version": "1",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    if asked["way"] == "queue" and asked["benchmark"] != "submit":
        DBOS.register_queue(QUEUE, polling_interval_sec=0.01, worker_concurrency=1000, on_conflict="always_update")
        time.sleep(0.5)
    answer(**measure(asked["benchmark"], asked["way"], asked["count"], asked["flight"], url))
    os._exit(0)


if __name__ == "__main__":
    main()
