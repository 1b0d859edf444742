"""pgqueuer on PostgreSQL: asyncpg, uvloop, batches of 250. It buffers acknowledgements and keeps no
result."""

from __future__ import annotations

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.systems import jobs

BULK = 1000


async def connect() -> AsyncpgDriver:
    return AsyncpgDriver(await asyncpg.connect(jobs.STORE))


async def prepare(_: int) -> None:
    await Queries(await connect()).install()


async def submit(count: int) -> dict[str, float]:
    queries = Queries(await connect())

    async def bulk(_: int) -> None:
        await queries.enqueue(["noop"] * BULK, [None] * BULK, [0] * BULK)

    batches = await jobs.in_lanes(count // BULK, 1, bulk)
    return {"value": batches["value"] * BULK}


async def single(count: int) -> dict[str, float]:
    queries = Queries(await connect())
    return await jobs.in_lanes(count, 1, lambda _: queries.enqueue("noop", None))


async def pickup(count: int) -> dict[str, float]:
    queries = Queries(await connect())
    return await jobs.pickups(
        count, lambda submitted: queries.enqueue("noop", repr(submitted).encode())
    )


async def work(_: int) -> None:
    queuer = PgQueuer(await connect())

    @queuer.entrypoint("noop")
    async def noop(job) -> None:
        jobs.done(float(job.payload) if job.payload else None)

    await queuer.run(batch_size=250)


if __name__ == "__main__":
    jobs.serve(prepare=prepare, submit=submit, single=single, work=work, pickup=pickup)
