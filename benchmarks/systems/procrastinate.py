"""procrastinate on PostgreSQL: 10 jobs at once, 20 connections, uvloop, finished jobs deleted."""

from __future__ import annotations

from procrastinate import App, PsycopgConnector

from benchmarks.systems import jobs

BULK = 500

app = App(connector=PsycopgConnector(conninfo=jobs.STORE, min_size=5, max_size=20))


@app.task(name="noop")
async def noop(submitted: float | None = None) -> None:
    jobs.done(submitted)


async def prepare(_: int) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def submit(count: int) -> dict[str, float]:
    async def bulk(_: int) -> None:
        await noop.batch_defer_async(*[{}] * BULK)

    async with app.open_async():
        batches = await jobs.in_lanes(count // BULK, 1, bulk)
    return {"value": batches["value"] * BULK}


async def single(count: int) -> dict[str, float]:
    async with app.open_async():
        return await jobs.in_lanes(count, 1, lambda _: noop.defer_async())


async def pickup(count: int) -> dict[str, float]:
    async with app.open_async():
        return await jobs.pickups(count, lambda submitted: noop.defer_async(submitted=submitted))


async def work(_: int) -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=10, delete_jobs="successful")


if __name__ == "__main__":
    jobs.serve(prepare=prepare, submit=submit, single=single, work=work, pickup=pickup)
