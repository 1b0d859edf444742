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

from benchmarks.systems.common import answer, keep_in_flight, latency, one_at_a_time, read_task

THREADS = {"thread": 1, "threads": 8}
"""More threads only wait longer for SQLite's one writer: with eight DBOS is no faster than with
one."""

QUEUE = "benchmark"
WARM_UP = 10
RESULT = {"i": 1, "ok": True}


@DBOS.workflow(name="noop")
def noop() -> dict[str, Any]:
    return RESULT


@DBOS.workflow(name="noop_async")
async def noop_async() -> dict[str, Any]:
    return RESULT


@DBOS.workflow(name="stopwatch")
def stopwatch(submitted: float) -> float:
    """From the caller's clock reading to this line; the monotonic clock is the same in all
    processes."""
    return time.perf_counter() - submitted


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


def threaded(count: int, threads: int, call: Any) -> float:
    """Direct calls per second."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: call(), range(count)))
    return count / (time.perf_counter() - start)


def queued(count: int, flight: int) -> float:
    """Enqueued by threads, executed by the queue's dispatcher, awaited; at most `flight` at
    once."""
    room = threading.Semaphore(flight)

    def enqueue(_: int) -> Any:
        room.acquire()
        return DBOS.enqueue_workflow(QUEUE, noop)

    def wait(handle: Any) -> None:
        handle.get_result(polling_interval_sec=0.02)
        room.release()

    start = time.perf_counter()
    with ThreadPoolExecutor(4) as clients, ThreadPoolExecutor(16) as waiters:
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
        handle = DBOS.enqueue_workflow(QUEUE, stopwatch, time.perf_counter())
        seconds.append(handle.get_result(polling_interval_sec=0.02))
    return seconds


def sequential(count: int, call: Any) -> list[float]:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def throughput(name: str, way: str, count: int, flight: int) -> float:
    workflow, workflow_async = (noop, noop_async) if name == "noop_runs" else (five, five_async)
    if way == "queue":
        queued(WARM_UP, flight)
        return queued(count, flight)
    if way == "async":
        return asyncio.run(warm_in_flight(count, flight, workflow_async))
    threaded(WARM_UP, THREADS[way], workflow)
    return threaded(count, THREADS[way], workflow)


async def warm_in_flight(count: int, flight: int, call: Any) -> float:
    await keep_in_flight(WARM_UP, flight, call)
    return await keep_in_flight(count, flight, call)


async def warm_one_at_a_time(count: int, call: Any) -> list[float]:
    await one_at_a_time(WARM_UP, call)
    return await one_at_a_time(count, call)


def measure(name: str, way: str, count: int, flight: int, url: str) -> dict[str, Any]:
    if name == "five_step_p50":
        if way == "thread":
            sequential(WARM_UP, five)
            return latency(sequential(count, five))
        return latency(asyncio.run(warm_one_at_a_time(count, five_async)))
    if name == "submit":
        return {"value": submit(url, count)}
    if name == "pickup_p50":
        return latency(pickup(count))
    return {"value": throughput(name, way, count, flight)}


def main() -> None:
    task = read_task()
    path = Path(task["folder"], "dbos.sqlite")
    if task.get("wal"):
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
    if task["way"] == "queue" and task["benchmark"] != "submit":
        DBOS.register_queue(
            QUEUE, polling_interval_sec=0.01, worker_concurrency=1000, on_conflict="always_update"
        )
        time.sleep(0.5)
    answer(**measure(task["benchmark"], task["way"], task["count"], task["flight"], url))
    os._exit(0)


if __name__ == "__main__":
    main()
