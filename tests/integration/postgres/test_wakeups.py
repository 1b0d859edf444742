"""Wake-ups between processes: by notification, or by polling where notifications do not arrive."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.integration.postgres.conftest import Schema, until

from holdfast.adapters.postgres import listener
from holdfast.adapters.postgres.notifications import INTERVAL
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.model.commands import (
    Acquire,
    Bury,
    Discard,
    ForceRelease,
    ReleaseLock,
    SaveProgress,
    Settle,
    Wake,
)
from holdfast.testing.contracts.store_topics.harness import a_checkpoint, a_claim, a_submit

LONG = 30.0


async def hears(store: PostgresStore) -> None:
    await until(lambda: store._listener.is_listening)


async def quiet(store: PostgresStore) -> int:
    """The number of the last notification, once there was none for a moment."""
    version = await store.wait(0, 0.0)
    while (again := await store.wait(version, 0.2)) > version:
        version = again
    return version


@pytest.mark.parametrize("listen", ["on", "off"])
def test_another_process_is_heard_soon(schema: Schema, listen: str) -> None:
    async def story() -> None:
        async with schema.store(listen=listen) as ours, schema.store() as remote:
            if listen == "on":
                await hears(ours)
            late: list[float] = []
            version = await quiet(ours)
            for number in range(10):
                start = time.monotonic()
                await remote.apply([a_submit(f"r{number}")])
                version = await ours.wait(version, LONG)
                late.append(time.monotonic() - start)
                await asyncio.sleep(0.03)
            assert sorted(late)[5] < 0.1, late

    asyncio.run(story())


@pytest.mark.parametrize("listen", ["on", "off"])
def test_whatever_gives_others_something_to_do_is_heard(schema: Schema, listen: str) -> None:
    async def story() -> None:
        async with schema.store(listen=listen) as ours, schema.store() as remote:
            if listen == "on":
                await hears(ours)
            await remote.apply([Acquire("a", "t", "w", 60.0), Acquire("b", "t", "w", 60.0)])
            await remote.apply([Bury("m", "bus", "bad", b"")])
            submits = [a_submit("r1"), a_submit("r2", unique=True)]
            for command in (
                ReleaseLock("a", "t"),
                ForceRelease("b", "ann", ""),
                Discard("m", "ann", ""),
                *submits,
            ):
                version = await quiet(ours)
                assert await remote.apply([command]) != [False]
                assert await ours.wait(version, LONG) > version, command

    asyncio.run(story())


def test_what_is_nobodys_business_is_not_announced(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as ours, schema.store() as remote:
            await hears(ours)
            await hears(remote)
            await remote.apply([a_submit("r1"), a_claim()])
            version = await quiet(ours)
            await remote.apply([a_checkpoint("r1", 1), SaveProgress("r1", 1, "{}"), a_claim()])
            assert await ours.wait(version, 0.2) == version

    asyncio.run(story())


def test_who_waits_for_work_is_left_alone_when_runs_succeed(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as ours, schema.store() as remote:
            await hears(ours)
            await remote.apply([a_submit("r1"), a_submit("r2")])
            [[first, second]] = await remote.apply([a_claim(limit=2)])
            version = await quiet(ours)
            for_news, for_work = (
                asyncio.create_task(ours.wait(version, LONG, wake=wake))
                for wake in (Wake.WAITERS, Wake.WORKERS)
            )
            await remote.apply(
                [Settle("r1", first.epoch, "succeeded", result="1")]
            )  # alone, and in a batch
            await remote.apply(
                [Settle("r2", second.epoch, "succeeded", result="1"), SaveProgress("r1", 1, "{}")]
            )
            assert await for_news > version
            assert not for_work.done()
            await remote.apply([a_submit("r3")])
            assert await for_work > version

    asyncio.run(story())


def test_a_store_does_not_hear_itself_twice(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as store:
            await hears(store)
            before = await quiet(store)
            await store.apply([a_submit("r1")])
            assert await quiet(store) == before + 1

    asyncio.run(story())


def test_many_changes_are_few_notifications_and_the_last_one_arrives(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as ours, schema.store() as remote:
            await hears(ours)
            before = await quiet(ours)
            start = time.monotonic()
            for number in range(50):
                await remote.apply([a_submit(f"r{number}")])
            took = time.monotonic() - start
            await asyncio.sleep(5 * INTERVAL)
            version = await quiet(ours)
            assert 2 <= version - before <= 3 + took / INTERVAL
            assert version - before < 50

    asyncio.run(story())


def test_where_notifications_do_not_arrive_the_store_notices_and_polls(
    schema: Schema, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As behind a pooler in transaction mode, which takes LISTEN and delivers nothing."""
    monkeypatch.setattr(listener, "PROBE", 0.1)

    async def story() -> None:
        store = PostgresStore(schema.url())
        store._statements["channel"] = b"SELECT 'another_channel'"
        await store.open()
        try:
            await until(lambda: "delivers no notifications" in caplog.text)
            async with schema.store() as remote:
                version = await quiet(store)
                await remote.apply([a_submit("r1")])
                assert await store.wait(version, LONG) > version
        finally:
            await store.close()

    asyncio.run(story())
    assert "add listen=host:port" in caplog.text
