"""Dramatiq on Redis: a deep prefetch, retries its only middleware. The way says how many threads
its worker has."""

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
def noop(submitted: float | None = None) -> None:
    jobs.done(submitted)


def submit(count: int, threads: int = 8) -> dict[str, float]:
    """It has no call that takes many: threads share the server's fsync."""
    noop.broker.client.ping()
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: noop.send(), range(count)))
    return jobs.rate(count, start)


def work(_: int) -> None:
    os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 - its name for it
    threads = jobs.WAY.split()[0] if jobs.WAY else "1"
    jobs.become("dramatiq", "benchmarks.systems.dramatiq", "-p", "1", "-t", threads)


if __name__ == "__main__":
    jobs.serve(
        submit=submit,
        single=lambda count: submit(count, threads=1),
        work=work,
        pickup=lambda count: jobs.blocking_pickups(count, noop.send),
    )
