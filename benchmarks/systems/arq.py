"""arq on Redis: 100 jobs at once, a poll every 5 ms (0.5 s by default), uvloop, results not
kept."""

from __future__ import annotations

import asyncio

from arq import create_pool, func, run_worker
from arq.connections import RedisSettings

from benchmarks.systems import jobs

REDIS = RedisSettings.from_dsn(jobs.STORE)


async def noop(_: object, submitted: float | None = None) -> None:
    jobs.done(submitted)


class Worker:
    functions = (func(noop, keep_result=0),)
    redis_settings = REDIS
    max_jobs = 100
    poll_delay = 0.005
    keep_result = 0
    log_results = False


async def submit(count: int, flight: int = 50) -> dict[str, float]:
    pool = await create_pool(REDIS)
    return await jobs.in_lanes(count, flight, lambda _: pool.enqueue_job("noop"))


async def pickup(count: int) -> dict[str, float]:
    pool = await create_pool(REDIS)
    return await jobs.pickups(count, lambda submitted: pool.enqueue_job("noop", submitted))


def work(_: int) -> None:
    import uvloop

    asyncio.set_event_loop(uvloop.new_event_loop())
    run_worker(Worker)


if __name__ == "__main__":
    jobs.serve(
        submit=submit, single=lambda count: submit(count, flight=1), work=work, pickup=pickup
    )
