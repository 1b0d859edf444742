"""DBOS on PostgreSQL: its queue polled every 20 ms (1 s by default), 1,000 workflows at once, 20
connections. Five steps also by direct calls, from 8 threads or 16 at once on one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS, DBOSClient

from benchmarks.systems import jobs
from benchmarks.systems.common import keep_in_flight, latency, one_at_a_time

URL = jobs.STORE.replace("postgresql://", "postgresql+psycopg://")
QUEUE = "benchmark"
THREADS = 8
AT_ONCE = 16
"""Direct calls on one event loop."""
WARM_UP = 10


@DBOS.workflow(name="noop")
async def noop(submitted: float | None = None) -> None:
    jobs.done(submitted)


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
    jobs.executed.add()
    return result


@DBOS.workflow(name="five_async")
async def five_async() -> dict[str, Any]:
    result = {}
    for number in range(5):
        result = await step_async(number)
    jobs.executed.add()
    return result


def launch() -> None:
    logging.disable(logging.WARNING)
    config = {
        "name": "benchmark",
        "system_database_url": URL,
        "sys_db_pool_size": 20,
        "log_level": "ERROR",
        "application_version": "1",
        "executor_id": f"worker-{os.getpid()}",
        "run_admin_server": False,
    }
    DBOS(config=config)  # type: ignore[arg-type]
    DBOS.launch()


def prepare(_: int) -> None:
    launch()
    DBOS.destroy()


def submit(count: int, name: str = "noop", threads: int = THREADS) -> dict[str, float]:
    """It has no call that takes many: a client enqueues from threads."""
    client = DBOSClient(system_database_url=URL)
    options: Any = {"workflow_name": name, "queue_name": QUEUE, "app_version": "1"}
    client.list_workflows(limit=1)
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: client.enqueue(options), range(count)))
    return jobs.rate(count, start)


def submit_five(count: int) -> dict[str, float]:
    return submit(count, "five_async" if jobs.WAY.endswith("async") else "five")


def pickup(count: int) -> dict[str, float]:
    client = DBOSClient(system_database_url=URL)
    options: Any = {"workflow_name": "noop", "queue_name": QUEUE, "app_version": "1"}
    return jobs.blocking_pickups(count, lambda submitted: client.enqueue(options, submitted))


def work(_: int) -> None:
    launch()
    DBOS.register_queue(
        QUEUE, polling_interval_sec=0.02, worker_concurrency=1000, on_conflict="always_update"
    )
    time.sleep(1e6)


def five_runs(count: int) -> dict[str, float]:
    """Called directly, without the queue: from threads, or at once on one event loop."""
    launch()
    if jobs.WAY.endswith("async"):
        return {"value": asyncio.run(_five_on_one_loop(count))}
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: five(), range(WARM_UP)))
        start = time.perf_counter()
        list(pool.map(lambda _: five(), range(count)))
    return jobs.rate(count, start)


async def _five_on_one_loop(count: int) -> float:
    await keep_in_flight(WARM_UP, AT_ONCE, five_async)
    return await keep_in_flight(count, AT_ONCE, five_async)


def five_p50(count: int) -> dict[str, float]:
    launch()

    async def call_five() -> None:
        five()

    async def all_of_them() -> list[float]:
        await one_at_a_time(WARM_UP, call_five)
        return await one_at_a_time(count, call_five)

    async def all_async() -> list[float]:
        await one_at_a_time(WARM_UP, five_async)
        return await one_at_a_time(count, five_async)

    return latency(asyncio.run(all_async() if jobs.WAY == "async" else all_of_them()))


if __name__ == "__main__":
    jobs.serve(
        prepare=prepare,
        submit=submit,
        single=lambda count: submit(count, threads=1),
        submit_five=submit_five,
        work=work,
        pickup=pickup,
        five_runs=five_runs,
        five_p50=five_p50,
    )
