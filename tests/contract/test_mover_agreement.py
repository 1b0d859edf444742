"""A random story that is moved to another store in the middle, and then goes on: nobody may tell
the difference.

The first half is executed on `MemoryStore`, everything is moved to the store under test, and the
second half is executed on both, as in `test_store_agreement`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from tests import postgres_server
from tests.contract.test_store_agreement import (
    LANES,
    RUNS,
    TOKENS,
    Pair,
    Step,
    _acquire,
    _submit,
    in_batches,
    one_by_one,
)
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.memory.mover import MemoryMover
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.mover import PostgresMover
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.mover import RedisMover
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.mover import SqliteMover
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model import commands as c
from holdfast.ports.mover import Mover
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.mover_topics.harness import move

Ways = tuple[Callable[[ManualClock], Store], Callable[[ManualClock], Mover]]


class MovedPair(Pair):
    """Memory, and what was moved from it."""

    def __init__(self, ways: Ways) -> None:
        self._make_store, self._make_mover = ways
        super().__init__(self._make_store)
        memory, self._moved = self.stores
        assert isinstance(memory, MemoryStore)
        self._memory = memory
        self.stores = [memory]

    async def execute(self, script: list[Step]) -> None:
        await self.apply([c.DefineLane(name, *kind) for name, kind in LANES.items()])
        await self.apply([_acquire(f"lane:{name}", TOKENS[0], 300.0) for name in LANES])
        await self.apply(
            [_submit(run, False, lane=lane) for run, lane in zip(RUNS[2:], LANES, strict=True)]
        )
        for step in script[: len(script) // 2]:
            await self.take(step)
        await self.move()
        try:
            await self.compare()
            await self.apply([_acquire(f"lane:{name}", TOKENS[0], 300.0) for name in LANES])
            for step in script[len(script) // 2 :]:
                await self.take(step)
                await self.compare()
        finally:
            await self._moved.close()

    async def apply(self, batch: list[c.Command]) -> None:
        if len(self.stores) == 1:
            await self._memory.apply(batch)
        else:
            await super().apply(batch)

    async def move(self) -> None:
        source, target = MemoryMover(self._memory), self._make_mover(self.clock)
        await target.open()
        try:
            await move(source, target)
        finally:
            await target.close()
        await source.release()
        await self._moved.open()
        self.stores = [self._memory, self._moved]


def sqlite(folder: str) -> Ways:
    path = Path(folder) / "holdfast.db"
    return lambda clock: SqliteStore(path, clock, threads=False), lambda clock: SqliteMover(
        path, clock
    )


def postgres() -> Ways:
    url = postgres_server.shared_server().url(postgres_server.emptied_schema())
    return lambda clock: PostgresStore(url, clock), lambda clock: PostgresMover(url, clock)


def redis() -> Ways:
    url = shared_server().url(prefix=fresh_prefix())
    return lambda clock: RedisStore(url, test_clock=clock), lambda clock: RedisMover(
        url, test_clock=clock
    )


often = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seldom = settings(often, max_examples=8)


@often
@given(script=one_by_one | in_batches)
def test_a_story_goes_on_in_sqlite(script: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(MovedPair(sqlite(folder)).execute(script))


@often
@given(script=one_by_one | in_batches)
def test_a_story_goes_on_on_redis(script: list[Step]) -> None:
    asyncio.run(MovedPair(redis()).execute(script))


@seldom
@given(script=one_by_one | in_batches)
def test_a_story_goes_on_on_postgresql(script: list[Step]) -> None:
    asyncio.run(MovedPair(postgres()).execute(script))
