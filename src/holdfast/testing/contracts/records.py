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


class RecordsHarness:
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


def records_test(test: Callable[[Any, RecordsHarness], Awaitable[None]]) -> Callable[[Any], None]:
    def run_test(self: RecordsContract) -> None:
        async def run() -> None:
            clock = ManualClock()
            async with self.make_records(clock) as records:
                await test(self, RecordsHarness(records, clock))

        asyncio.run(run())

    run_test.__name__, run_test.__qualname__, run_test.__doc__ = (
        test.__name__,
        test.__qualname__,
        test.__doc__,
    )
    return run_test


class RecordsContract:
    """Subclass it and define `make_records`. No test sleeps: the clock is moved."""

    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        raise NotImplementedError("say how to make the records under test")

    @records_test
    async def test_what_is_put_can_be_read(self, harness: RecordsHarness) -> None:
        assert (await harness.records.get("a")).records == []
        version = await harness.put("a", '{"n": "☃"}')
        page = await harness.records.get("a")
        [record] = page.records
        assert (record.key, record.value, record.version) == ("a", '{"n": "☃"}', version)
        assert record.updated == page.now == harness.clock.now()

    @records_test
    async def test_a_record_is_made_once(self, harness: RecordsHarness) -> None:
        version = await harness.put("a", "1")
        assert await harness.records.put("a", "2") == Changed(version)
        assert await harness.value("a") == "1"

    @records_test
    async def test_only_who_knows_the_version_replaces_it(self, harness: RecordsHarness) -> None:
        first = await harness.put("a", "1")
        second = await harness.put("a", "2", expected=first)
        assert await harness.records.put("a", "3", expected=first) == Changed(second)
        assert await harness.records.put("b", "3", expected=first) == Changed(None)
        assert (await harness.value("a"), await harness.value("b")) == ("2", None)

    @records_test
    async def test_a_version_is_never_used_twice(self, harness: RecordsHarness) -> None:
        versions = []
        for _ in range(5):
            version = await harness.put("a", "1")
            versions += [version, await harness.put("a", "1", expected=version)]
            assert await harness.records.delete("a", expected=versions[-1])
        assert len(set(versions)) == 10

    @records_test
    async def test_a_deleted_record_is_gone(self, harness: RecordsHarness) -> None:
        version = await harness.put("a")
        assert not await harness.records.delete("a", expected="another")
        assert await harness.records.delete("a", expected=version)
        assert not await harness.records.delete("a", expected=version)
        assert await harness.value("a") is None
        assert await harness.records.put("a", "2", expected=version) == Changed(None)

    @records_test
    async def test_records_are_listed_by_prefix_in_order(self, harness: RecordsHarness) -> None:
        for key in ("w/b", "w/a", "w", "w/é", "x/a", "w/aa", "v/z"):
            await harness.put(key)
        assert await harness.keys("w/") == ["w/a", "w/aa", "w/b", "w/é"]
        assert await harness.keys("w/", limit=2) == ["w/a", "w/aa"]
        assert await harness.keys("w/", after="w/aa") == ["w/b", "w/é"]
        assert await harness.keys("") == ["v/z", "w", "w/a", "w/aa", "w/b", "w/é", "x/a"]
        assert await harness.keys("none/") == []

    @records_test
    async def test_characters_that_patterns_know_are_plain_here(
        self, harness: RecordsHarness
    ) -> None:
        for key in ("a%b", "a_b", "a*b", "axb", "a\\b", "a[x]b"):
            await harness.put(key)
        for key in ("a%b", "a_b", "a*b", "a\\b", "a[x]b"):
            assert await harness.keys(key) == [key]

    @records_test
    async def test_a_record_expires(self, harness: RecordsHarness) -> None:
        version = await harness.put("a", ttl=10.0)
        await harness.put("b")
        harness.clock.advance(9.0)
        assert await harness.keys("") == ["a", "b"]
        harness.clock.advance(1.0)
        assert await harness.keys("") == ["b"]
        assert await harness.value("a") is None
        assert await harness.records.put("a", "2", expected=version) == Changed(None)
        assert not await harness.records.delete("a", expected=version)
        assert await harness.put("a", "3") != version
        assert await harness.value("a") == "3"

    @records_test
    async def test_every_put_begins_the_time_anew(self, harness: RecordsHarness) -> None:
        version = await harness.put("a", ttl=10.0)
        harness.clock.advance(9.0)
        version = await harness.put("a", ttl=10.0, expected=version)
        harness.clock.advance(9.0)
        assert await harness.value("a") == "1"
        await harness.put("a", expected=version)
        harness.clock.advance(1000.0)
        assert await harness.value("a") == "1"

    @records_test
    async def test_of_those_who_put_at_once_one_wins(self, harness: RecordsHarness) -> None:
        first = await harness.put("n", "0")
        tries = [harness.records.put("n", str(number), expected=first) for number in range(1, 9)]
        replies = await asyncio.gather(*tries)
        assert sum(isinstance(reply, Stored) for reply in replies) == 1
        for key in map(str, range(30)):  # several, so that some of them overlap
            results = await asyncio.gather(*[harness.records.put(key, str(n)) for n in range(8)])
            assert sum(isinstance(reply, Stored) for reply in results) == 1

    @records_test
    async def test_a_counter_loses_nothing(self, harness: RecordsHarness) -> None:
        await harness.put("n", "0")

        async def count() -> None:
            while True:
                [record] = (await harness.records.get("n")).records
                value = str(int(record.value) + 1)
                reply = await harness.records.put("n", value, expected=record.version)
                if isinstance(reply, Stored):
                    return

        await asyncio.gather(*[count() for _ in range(10)])
        assert await harness.value("n") == "10"

    @records_test
    async def test_what_is_too_large_is_refused(self, harness: RecordsHarness) -> None:
        assert await harness.put("k" * MAX_KEY, "x" * MAX_VALUE)
        assert await harness.value("k" * MAX_KEY) == "x" * MAX_VALUE
        for key, value in (
            ("", "1"),
            ("k" * (MAX_KEY + 1), "1"),
            ("k", "x" * (MAX_VALUE + 1)),
            ("\ud800", "1"),
            ("k", "\ud800"),
        ):
            with pytest.raises(InvalidInput):
                await harness.records.put(key, value)
