"""redis-py's Lock: acquire and release, each task with a lock of its own."""

from __future__ import annotations

from redis.asyncio import Redis

from benchmarks.systems import jobs


async def locks(count: int) -> dict[str, float]:
    client = Redis.from_url(jobs.STORE)

    async def lock(lane: int) -> None:
        async with client.lock(f"lock:{lane}", timeout=10):
            pass

    await lock(0)
    return await jobs.in_lanes(count, jobs.FLIGHT, lock)


if __name__ == "__main__":
    jobs.serve(locks=locks)
