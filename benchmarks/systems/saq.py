"""SAQ on Redis: orjson, uvloop, 50 jobs at once, results not kept."""

from __future__ import annotations

import logging

import orjson
from saq import Queue
from saq.worker import start

from benchmarks.systems import jobs

queue = Queue.from_url(jobs.STORE, dump=orjson.dumps, load=orjson.loads, max_concurrent_ops=100)


async def noop(_: object, *, submitted: float | None = None) -> None:
    jobs.done(submitted)


settings = {"queue": queue, "functions": [noop], "concurrency": 50}


async def submit(count: int, flight: int = 50) -> dict[str, float]:
    await queue.connect()
    return await jobs.in_lanes(count, flight, lambda _: queue.enqueue("noop", ttl=-1))


async def pickup(count: int) -> dict[str, float]:
    await queue.connect()
    return await jobs.pickups(count, lambda submitted: queue.enqueue("noop", submitted=submitted))


def work(_: int) -> None:
    import uvloop

    uvloop.install()
    logging.disable(logging.INFO)
    start("benchmarks.systems.saq.settings")


if __name__ == "__main__":
    jobs.serve(
        submit=submit, single=lambda count: submit(count, flight=1), work=work, pickup=pickup
    )
