"""aioredlock: acquire and release, each task with a lock of its own."""

from __future__ import annotations

from aioredlock import Aioredlock

from benchmarks.systems import jobs


async def locks(count: int) -> dict[str, float]:
    manager = Aioredlock([jobs.STORE])

    async def lock(lane: int) -> None:
        async with await manager.lock(f"lock:{lane}", lock_timeout=10):
            pass

    await lock(0)
    return await jobs.in_lanes(count, jobs.FLIGHT, lock)


if __name__ == "__main__":
    jobs.serve(locks=locks)
