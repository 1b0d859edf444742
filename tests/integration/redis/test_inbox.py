"""Plain submits that come alone: put down without a script, and taken in before anything that comes
later."""

from __future__ import annotations

import asyncio

from tests.integration.redis.scene import a_claim, a_store, a_submit

from holdfast.adapters.redis.store import FULL, RedisStore
from holdfast.model.commands import Submitted
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter


async def lying(store: RedisStore) -> int:
    """How many lie in the inbox."""
    return await store._ask("XLEN", store._key("inbox"))


async def opened(store: RedisStore) -> None:
    """The inbox is there once a submit has come by a script."""
    assert await store.apply([a_submit("first")]) == [Submitted("first", True, "queued")]
    assert await lying(store) == 0


def names(runs: list[Run]) -> list[str]:
    return [run.id for run in runs]


def test_a_submit_that_comes_alone_is_put_down_and_then_taken_in() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            assert await store.apply([a_submit("r1")]) == [Submitted("r1", True, "queued")]
            assert await lying(store) == 1
            [[first, second]] = await store.apply([a_claim(limit=5)])
            assert (first.run, second.run) == ("first", "r1")
            assert await lying(store) == 0

    asyncio.run(play())


def test_whoever_reads_sees_what_lies_in_the_inbox() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            await store.apply([a_submit("r1")])
            assert names(await store.runs(RunFilter())) == ["r1", "first"]
            await store.apply([a_submit("r2")])
            assert await store.count(RunFilter()) == {"queued": 3}
            await store.apply([a_submit("r3")])
            found = await store.run("r3")
            assert found is not None
            assert [event.type for event in await store.history("r3")] == ["run.queued"]

    asyncio.run(play())


def test_what_lies_in_the_inbox_comes_before_what_comes_later() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            await store.apply([a_submit("r1")])
            await store.apply([a_submit("r2", key="k")])
            await store.apply([a_submit("r3")])
            assert names(await store.runs(RunFilter())) == ["r3", "r2", "r1", "first"]

    asyncio.run(play())


def test_a_run_was_created_when_it_came_and_not_when_it_was_taken_in() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            await store.apply([a_submit("r1")])
            seconds, micros = await store._ask("TIME")
            asked = int(seconds) + int(micros) / 1e6
            while True:
                seconds, micros = await store._ask("TIME")
                if int(seconds) + int(micros) / 1e6 > asked + 0.01:
                    break
            found = await store.run("r1")
            assert found is not None
            assert found.created <= asked

    asyncio.run(play())


def test_a_request_that_is_repeated_gives_one_run() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            for _ in range(3):
                assert await store.apply([a_submit("r1")]) == [Submitted("r1", True, "queued")]
            assert names(await store.runs(RunFilter())) == ["r1", "first"]
            await store.apply([a_claim(limit=5)])
            assert await store.apply([a_submit("r1")]) == [Submitted("r1", True, "running")]
            assert names(await store.runs(RunFilter())) == ["r1", "first"]

    asyncio.run(play())


def test_a_full_inbox_is_emptied_by_whoever_fills_it() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            most = 0
            for number in range(FULL + 5):
                await store.apply([a_submit(f"r{number}")])
                most = max(most, await lying(store))
            assert most == FULL
            assert await lying(store) < 10
            assert await store.count(RunFilter()) == {"queued": FULL + 6}

    asyncio.run(play())


def test_a_submit_with_conditions_never_lies_in_the_inbox() -> None:
    async def play() -> None:
        async with a_store() as store:
            await opened(store)
            for command in (
                a_submit("r1", key="k"),
                a_submit("r2", delay=1.0),
                a_submit("r3", unique=True),
            ):
                await store.apply([command])
                assert await lying(store) == 0

    asyncio.run(play())
