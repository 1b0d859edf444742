"""Idle workers stand by at the inbox: they are given runs, never more than they have room for, and
lose none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.integration.redis.scene import a_claim, a_server, a_store, a_submit, opened
from tests.redis_server import RedisServer, fresh_prefix, shared_server

from holdfast import Holdfast, Pipeline, WorkerOptions
from holdfast.adapters.redis.store import RedisStore
from holdfast.model.commands import Claimed, Renew, SaveProgress, Settle
from holdfast.testing.invariants import check_store

A_LOT = 1_000_000
"""Epochs of runs that were given out are above it, and those of runs that were claimed are not."""


async def given_by(store: RedisStore, submitter: RedisStore) -> Claimed:
    """The first run that is given to a store while another submits."""
    for number in range(50):
        waiting = asyncio.create_task(store.stand_by([a_claim()]))
        await submitter.apply([a_submit(f"r{number}")])
        if given := await waiting:
            return given[0]
    raise AssertionError("nothing was given")


def a_pipeline(body: Callable[[int], Awaitable[None]]) -> Pipeline[Any]:
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def only(input: int) -> int:
        await body(input)
        return input

    return pipeline


def test_a_run_is_given_to_another_process_and_is_done_like_any_other() -> None:
    async def play(redis: RedisServer) -> None:
        url = redis.url()
        async with opened(RedisStore(url)) as here, opened(RedisStore(url)) as there:
            given = await given_by(here, there)
            assert given.epoch > A_LOT
            assert await here.apply([SaveProgress(given.run, given.epoch, "{}")]) == [None]
            assert await there.apply([Renew([(given.run, given.epoch)], 30.0)]) == [[]]
            assert await here.apply([Settle(given.run, given.epoch, "succeeded", result="1")]) == [
                None
            ]
            assert await check_store(there) == []

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(play(redis))


def test_a_run_that_was_given_out_survives_the_server() -> None:
    """Who had it may go on: nobody else was given it, and the next script takes it in."""

    async def play(redis: RedisServer) -> None:
        async with (
            opened(RedisStore(redis.url())) as here,
            opened(RedisStore(redis.url())) as there,
        ):
            given = await given_by(here, there)
            redis.kill()
            redis.start()
        async with opened(RedisStore(redis.url())) as again:
            run = await again.run(given.run)
            assert run is not None
            assert (run.state, run.epoch) == ("running", given.epoch)
            assert await again.apply([Settle(given.run, given.epoch, "succeeded", result="1")]) == [
                None
            ]
            assert await check_store(again) == []

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(play(redis))


def test_it_is_taken_in_even_if_nothing_is_written() -> None:
    async def play() -> None:
        async with a_store() as store:
            given = await given_by(store, store)
            while await store._ask("XLEN", store._key("inbox")):
                pass
            assert await store._ask("SMEMBERS", store._key("leases:default")) == [
                given.run.encode()
            ]

    asyncio.run(play())


def test_whoever_leaves_is_no_longer_listed() -> None:
    async def play() -> None:
        url = shared_server().url(fresh_prefix())
        async with opened(RedisStore(url)) as there:
            async with opened(RedisStore(url)) as here:
                await given_by(here, there)
                assert len(await there._ask("XINFO", "CONSUMERS", there._inbox, "idle")) == 1
            while await there._ask("XINFO", "CONSUMERS", there._inbox, "idle"):
                pass

    asyncio.run(play())


def test_an_idle_worker_is_given_what_another_process_submits() -> None:
    async def play() -> None:
        async def body(_: int) -> None:
            """Nothing to do."""

        pipeline, url = a_pipeline(body), shared_server().url(fresh_prefix())
        async with (
            Holdfast(url, [pipeline], worker=WorkerOptions()),
            Holdfast(url, [pipeline], worker=False) as app,
        ):
            epochs: list[int] = []
            while not epochs or epochs[-1] < A_LOT:
                assert len(epochs) < 50, epochs
                run = await app.submit(pipeline, len(epochs))
                assert await run.result(10) == len(epochs)
                epochs.append((await run.info()).epoch)
            assert await check_store(app.store) == []

    asyncio.run(play())


def test_a_worker_that_is_given_a_run_and_has_no_room_hands_it_over() -> None:
    async def play() -> None:
        now, most, gate, busy = 0, 0, asyncio.Event(), asyncio.Event()

        async def body(_: int) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            busy.set()
            await gate.wait()
            now -= 1

        pipeline, url = a_pipeline(body), shared_server().url(fresh_prefix())
        options = WorkerOptions(concurrency=1)
        async with (
            Holdfast(url, [pipeline], worker=options),
            Holdfast(url, [pipeline], worker=False) as app,
        ):
            first = await app.submit(pipeline, 1, key="by a script")
            await busy.wait()
            others = [await app.submit(pipeline, number) for number in range(2, 20)]
            gate.set()
            assert await first.result(10) == 1
            assert [await run.result(10) for run in others] == list(range(2, 20))
            assert most == 1
            assert {(await run.info()).attempts for run in others} == {1}
            assert await check_store(app.store) == []

    asyncio.run(play())


def test_a_worker_that_stops_loses_nothing_that_it_is_given() -> None:
    async def play() -> None:
        async def body(_: int) -> None:
            """Nothing to do."""

        pipeline, url = a_pipeline(body), shared_server().url(fresh_prefix())
        async with Holdfast(url, [pipeline], worker=False) as app:
            runs = []
            for number in range(5):
                async with Holdfast(url, [pipeline], worker=WorkerOptions()):
                    runs.append(await app.submit(pipeline, number))
                    await runs[-1].result(10)
                    runs.append(await app.submit(pipeline, number))  # and the worker stops
            async with Holdfast(url, [pipeline], worker=WorkerOptions()):
                for run in runs:
                    await run.result(10)  # sooner than any lease ends
            assert await check_store(app.store) == []

    asyncio.run(play())
