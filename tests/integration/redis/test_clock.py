"""The server's clock may jump; leases and delays hardly notice. The kept reading is moved instead
of the clock."""

from __future__ import annotations

import asyncio

from tests.integration.redis.helpers import a_checkpoint, a_claim, a_store, a_submit

from holdfast.adapters.redis.store import RedisStore
from holdfast.model.commands import Acquire, Held, Settle, Sweep

YEAR = 365 * 86_400.0


async def jump(store: RedisStore, seconds: float) -> None:
    """As if the server's clock had been set ahead (or back) just now."""
    [wall] = await store._ask([("HGET", "meta", "wall")])
    await store._ask([("HSET", "meta", "wall", float(wall) - seconds)])


async def lease_left(store: RedisStore) -> float:
    [lock] = await store.apply([Acquire("lock", "other", "them", 1.0)])
    assert isinstance(lock, Held)
    return lock.remaining


def test_a_jump_ahead_ends_no_lease() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim(), Acquire("lock", "mine", "me", 30.0)])
            await jump(store, YEAR)
            assert await store.apply([Sweep(), a_checkpoint("r1", 1)]) == [[], None]
            assert 20.0 < await lease_left(store) < 23.0

    asyncio.run(story())


def test_a_jump_back_prolongs_no_lease() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([Acquire("lock", "mine", "me", 30.0)])
            await jump(store, -YEAR)
            assert 28.0 < await lease_left(store) <= 30.0
            await jump(store, 5.0)
            assert 23.0 < await lease_left(store) < 26.0

    asyncio.run(story())


def test_a_lease_ends_in_the_end() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            for _ in range(6):
                await jump(store, 6.0)
                await store.apply([a_claim()])
            assert await store.apply([Sweep()]) == [[("r1", "queued")]]

    asyncio.run(story())


def test_a_delay_counts_while_nobody_is_there() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1", delay=3600.0)])
            assert await store.apply([a_claim()]) == [[]]
            await jump(store, 3599.0)
            assert await store.apply([a_claim()]) == [[]]
            await jump(store, 1.0)
            [[claimed]] = await store.apply([a_claim()])
            assert claimed.run == "r1"

    asyncio.run(story())


def test_a_jump_back_prolongs_no_delay() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([a_submit("r1"), a_claim(), Settle("r1", 1, "retry", delay=60.0)])
            await jump(store, -YEAR)
            assert await store.apply([a_claim()]) == [[]]
            await jump(store, 61.0)  # the reading that was kept may be a second old
            [[claimed]] = await store.apply([a_claim()])
            assert claimed.run == "r1"

    asyncio.run(story())
