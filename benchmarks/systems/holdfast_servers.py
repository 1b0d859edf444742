"""holdfast on Redis and PostgreSQL, through the API that its users have."""

from __future__ import annotations

import os
import time
from typing import Any

from benchmarks.systems import jobs
from benchmarks.systems.common import latency, one_at_a_time
from benchmarks.systems.holdfast import complete
from benchmarks.systems.pipelines import five_steps, mapper
from holdfast import Holdfast, Pipeline, WorkerOptions
from holdfast.ports.store import RunFilter

BULK = 1000

noop = Pipeline("noop")
five = five_steps(jobs.executed.add)


@noop.step
async def only(input: float | None) -> dict:
    jobs.done(input)
    return {"ok": True}


pipelines = [noop, five, mapper]


def open_app(*, worker: bool = False) -> Holdfast:
    options = WorkerOptions(concurrency=jobs.FLIGHT) if worker else False
    return Holdfast(jobs.STORE, pipelines=pipelines, worker=options)


async def prepare(_: int) -> None:
    async with open_app():
        pass


async def submit(count: int, pipeline: Pipeline[Any] = noop) -> dict[str, float]:
    async with open_app() as app:
        await app.store.count(RunFilter())
        start = time.perf_counter()
        for sent in range(0, count, BULK):
            await app.submit_many(pipeline, [None] * min(BULK, count - sent))
        return jobs.rate(count, start)


async def single(count: int) -> dict[str, float]:
    async with open_app() as app:
        await app.store.count(RunFilter())
        return await jobs.in_lanes(count, 1, lambda _: app.submit(noop))


async def pickup(count: int) -> dict[str, float]:
    async with open_app() as app:
        return await jobs.pickups(count, lambda asked: app.submit(noop, asked))


def work(_: int) -> None:
    """A worker as its users start it, but for the line that it logs for each run. The way says how many at once."""
    at_once = jobs.WAY.split()[0] if jobs.WAY else str(jobs.FLIGHT)
    os.environ["HOLDFAST_LOG_LEVEL"] = "warning"
    options = ["--store", jobs.STORE, "--app", "benchmarks.systems.holdfast_servers:pipelines"]
    jobs.become("holdfast", *options, "worker", "--concurrency", at_once)


async def five_p50(count: int) -> dict[str, float]:
    async with open_app(worker=True) as app:
        await one_at_a_time(20, lambda: complete(app, five))
        return latency(await one_at_a_time(count, lambda: complete(app, five)))


async def map_items(count: int) -> dict[str, float]:
    async with open_app(worker=True) as app:
        await complete(app, mapper, 100)
        start = time.perf_counter()
        await complete(app, mapper, count)
        return jobs.rate(count, start)


async def locks(count: int) -> dict[str, float]:
    async with open_app() as app:

        async def one(lane: int) -> None:
            async with app.lock(f"lock-{lane}"):
                pass

        await one(0)
        return await jobs.in_lanes(count, jobs.FLIGHT, one)


if __name__ == "__main__":
    jobs.serve(
        prepare=prepare,
        submit=submit,
        single=single,
        submit_five=lambda count: submit(count, five),
        work=work,
        pickup=pickup,
        five_p50=five_p50,
        map_items=map_items,
        locks=locks,
    )
