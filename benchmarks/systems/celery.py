"""Celery on Redis: the solo pool (prefork is slower for small jobs), prefetch of 256, no results,
events or gossip."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

from celery import Celery

from benchmarks.systems import jobs

THREADS = 8

app = Celery("benchmark", broker=jobs.STORE)
app.conf.update(
    worker_prefetch_multiplier=256,
    task_ignore_result=True,
    worker_disable_rate_limits=True,
    worker_send_task_events=False,
    task_send_sent_event=False,
    worker_hijack_root_logger=False,
    broker_pool_limit=THREADS,
)


@app.task(name="noop")
def noop(submitted: float | None = None) -> None:
    jobs.done(submitted)


def submit(count: int, threads: int = THREADS) -> dict[str, float]:
    """It has no call that takes many: threads share the server's fsync."""

    def send(_: int) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            noop.apply_async(producer=producer, ignore_result=True, retry=False)

    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(send, range(count)))
    return jobs.rate(count, start)


def work(_: int) -> None:
    options = [
        "-P",
        "solo",
        "-c",
        "1",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "-l",
        "error",
    ]
    jobs.become(
        "celery", "-A", "benchmarks.systems.celery", "worker", *options, "-n", f"w{os.getpid()}@%h"
    )


if __name__ == "__main__":
    jobs.serve(
        submit=submit,
        single=lambda count: submit(count, threads=1),
        work=work,
        pickup=lambda count: jobs.blocking_pickups(count, noop.delay),
    )
