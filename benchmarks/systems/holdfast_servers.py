"""holdfast on Redis and PostgreSQL, through the API that its users have."""

from __future__ import annotations

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
    tuned = WorkerOptions(concurrency=jobs.CONCURRENCY) if jobs.CONCURRENCY else True
    return Holdfast(jobs.STORE, pipelines=pipelines, worker=worker and tuned)


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
        return await jobs.pickups(count, lambda submitted: app.submit(noop, submitted))


def work(_: int) -> None:
    """`holdfast worker` as its users start it; tuned, with `--concurrency`."""
    import uvloop  # noqa: F401  # it comes with the servers' extras; rows say that it is used

    arguments = ["--store", jobs.STORE, "--app", "benchmarks.systems.holdfast_servers:pipelines"]
    arguments += ["worker"]
    if jobs.CONCURRENCY:
        arguments += ["--concurrency", str(jobs.CONCURRENCY)]
    jobs.become("holdfast", *arguments)


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

        async def lock(lane: int) -> None:
            async with app.lock(f"lock-{lane}"):
                pass

        await lock(0)
        return await jobs.in_lanes(count, jobs.FLIGHT, lock)


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
