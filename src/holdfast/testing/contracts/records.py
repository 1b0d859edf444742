"""The contract of the `Records` port: every sentence of `ports/records.py`, as a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from holdfast.adapters.records import StoreRecords
from holdfast.errors import InvalidInput
from holdfast.model.replies import Changed, Stored
from holdfast.ports.records import MAX_KEY, MAX_VALUE, Records
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock


@asynccontextmanager
async def records_of(store: Store) -> AsyncIterator[Records]:
    """Records in a store, while it is open."""
    await store.open()
    try:
        yield StoreRecords(store)
    finally:
        await store.close()


class Stage:
    def __init__(self, records: Records, clock: ManualClock) -> None:
        self.records = records
        self.clock = clock

    async def put(self, key: str, value: str = "1", **options: Any) -> str:
        reply = await self.records.put(key, value, **options)
        assert isinstance(reply, Stored)
        return reply.version

    async def value(self, key: str) -> str | None:
        page = await self.records.get(key)
        return page.records[0].value if page.records else None

    async def keys(self, prefix: str, **options: Any) -> list[str]:
        return [record.key for record in (await self.records.list(prefix, **options)).records]


def story(test: Callable[[Any, Stage], Awaitable[None]]) -> Callable[[Any], None]:
    def play(self: RecordsContract) -> None:
        async def on_stage() -> None:
            clock = ManualClock()
            async with self.make_records(clock) as records:
                await test(self, Stage(records, clock))

        asyncio.run(on_stage())

    play.__name__, play.__qualname__, play.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return play


class RecordsContract:
    """Subclass it and define `make_records`. No test sleeps: the clock is moved."""

    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        raise NotImplementedError("say how to make the records under test")

    @story
    async def test_what_is_put_can_be_read(self, stage: Stage) -> None:
        assert (await stage.records.get("a")).records == []
        version = await stage.put("a", '{"n": "☃"}')
        page = await stage.records.get("a")
        [record] = page.records
        assert (record.key, record.value, record.version) == ("a", '{"n": "☃"}', version)
        assert record.updated == page.now == stage.clock.now()

    @story
    async def test_a_record_is_made_once(self, stage: Stage) -> None:
        version = await stage.put("a", "1")
        assert await stage.records.put("a", "2") == Changed(version)
        assert await stage.value("a") == "1"

    @story
    async def test_only_who_knows_the_version_replaces_it(self, stage: Stage) -> None:
        first = await stage.put("a", "1")
        second = await stage.put("a", "2", expected=first)
        assert await stage.records.put("a", "3", expected=first) == Changed(second)
        assert await stage.records.put("b", "3", expected=first) == Changed(None)
        assert (await stage.value("a"), await stage.value("b")) == ("2", None)

    @story
    async def test_a_version_is_never_used_twice(self, stage: Stage) -> None:
        seen = []
        for _ in range(5):
            version = await stage.put("a", "1")
            seen += [version, await stage.put("a", "1", expected=version)]
            assert await stage.records.delete("a", expected=seen[-1])
        assert len(set(seen)) == 10

    @story
    async def test_a_deleted_record_is_gone(self, stage: Stage) -> None:
        version = await stage.put("a")
        assert not await stage.records.delete("a", expected="another")
        assert await stage.records.delete("a", expected=version)
        assert not await stage.records.delete("a", expected=version)
        assert await stage.value("a") is None
        assert await stage.records.put("a", "2", expected=version) == Changed(None)

    @story
    async def test_records_are_listed_by_prefix_in_order(self, stage: Stage) -> None:
        for key in ("w/b", "w/a", "w", "w/é", "x/a", "w/aa", "v/z"):
            await stage.put(key)
        assert await stage.keys("w/") == ["w/a", "w/aa", "w/b", "w/é"]
        assert await stage.keys("w/", limit=2) == ["w/a", "w/aa"]
        assert await stage.keys("w/", after="w/aa") == ["w/b", "w/é"]
        assert await stage.keys("") == ["v/z", "w", "w/a", "w/aa", "w/b", "w/é", "x/a"]
        assert await stage.keys("none/") == []

    @story
    async def test_characters_that_patterns_know_are_plain_here(self, stage: Stage) -> None:
        for key in ("a%b", "a_b", "a*b", "axb", "a\\b", "a[x]b"):
            await stage.put(key)
        for key in ("a%b", "a_b", "a*b", "a\\b", "a[x]b"):
            assert await stage.keys(key) == [key]

    @story
    async def test_a_record_expires(self, stage: Stage) -> None:
        version = await stage.put("a", ttl=10.0)
        await stage.put("b")
        stage.clock.advance(9.0)
        assert await stage.keys("") == ["a", "b"]
        stage.clock.advance(1.0)
        assert await stage.keys("") == ["b"]
        assert await stage.value("a") is None
        assert await stage.records.put("a", "2", expected=version) == Changed(None)
        assert not await stage.records.delete("a", expected=version)
        assert await stage.put("a", "3") != version
        assert await stage.value("a") == "3"

    @story
    async def test_every_put_begins_the_time_anew(self, stage: Stage) -> None:
        version = await stage.put("a", ttl=10.0)
        stage.clock.advance(9.0)
        version = await stage.put("a", ttl=10.0, expected=version)
        stage.clock.advance(9.0)
        assert await stage.value("a") == "1"
        await stage.put("a", expected=version)
        stage.clock.advance(1000.0)
        assert await stage.value("a") == "1"

    @story
    async def test_of_those_who_put_at_once_one_wins(self, stage: Stage) -> None:
        first = await stage.put("n", "0")
        tries = [stage.records.put("n", str(number), expected=first) for number in range(1, 9)]
        replies = await asyncio.gather(*tries)
        assert sum(isinstance(reply, Stored) for reply in replies) == 1
        made = await asyncio.gather(*[stage.records.put("m", str(n)) for n in range(8)])
        assert sum(isinstance(reply, Stored) for reply in made) == 1

    @story
    async def test_a_counter_loses_nothing(self, stage: Stage) -> None:
        await stage.put("n", "0")

        async def count() -> None:
            while True:
                [record] = (await stage.records.get("n")).records
                value = str(int(record.value) + 1)
                reply = await stage.records.put("n", value, expected=record.version)
                if isinstance(reply, Stored):
                    return

        await asyncio.gather(*[count() for _ in range(10)])
        assert await stage.value("n") == "10"

    @story
    async def test_what_is_too_large_is_refused(self, stage: Stage) -> None:
        assert await stage.put("k" * MAX_KEY, "x" * MAX_VALUE)
        assert await stage.value("k" * MAX_KEY) == "x" * MAX_VALUE
        for key, value in (
            ("", "1"),
            ("k" * (MAX_KEY + 1), "1"),
            ("k", "x" * (MAX_VALUE + 1)),
            ("\ud800", "1"),
            ("k", "\ud800"),
        ):
            with pytest.raises(InvalidInput):
                await stage.records.put(key, value)
