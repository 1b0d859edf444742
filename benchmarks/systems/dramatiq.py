"""Dramatiq on Redis: one worker thread and a deep prefetch (more threads are slower), retries its only middleware."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

from benchmarks.systems import jobs

dramatiq.set_broker(RedisBroker(url=jobs.STORE, middleware=[Retries()]))


@dramatiq.actor
def noop(asked: float | None = None) -> None:
    jobs.done(asked)


def submit(count: int, threads: int = 8) -> dict[str, float]:
    """It has no call that takes many: threads share the server's fsync."""
    noop.broker.client.ping()
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: noop.send(), range(count)))
    return jobs.rate(count, start)


def work(_: int) -> None:
    os.environ["dramatiq_queue_prefetch"] = "1000"
    jobs.become("dramatiq", "benchmarks.systems.dramatiq", "-p", "1", "-t", "1")


if __name__ == "__main__":
    jobs.serve(
        submit=submit,
        single=lambda count: submit(count, threads=1),
        work=work,
        pickup=lambda count: jobs.blocking_pickups(count, noop.send),
    )
