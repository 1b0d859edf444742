"""What a store is notified of by the others on its server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.integration.redis.helpers import a_checkpoint, a_claim, a_submit, opened
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.redis.store import RedisStore
from holdfast.model.commands import Settle, Wake

LONG = 30.0


@asynccontextmanager
async def two_stores() -> AsyncIterator[tuple[RedisStore, RedisStore, int]]:
    """Ours, which listens, theirs, and the last notification that ours has seen."""
    url = shared_server().url(fresh_prefix())
    async with opened(RedisStore(url)) as ours, opened(RedisStore(url)) as remote:
        yield ours, remote, await ours.wait(0, LONG)  # it is notified when it begins to listen


@pytest.mark.parametrize("last", ["s", None])
def test_who_waits_for_work_is_left_alone_when_runs_succeed(last: str | None) -> None:
    """Whether the end of the run is a plain one or not."""

    async def story() -> None:
        async with two_stores() as (ours, remote, version):
            [_, [claimed]] = await remote.apply([a_submit("r1"), a_claim()])
            version = await ours.wait(version, LONG)
            for_news, for_work = (
                asyncio.create_task(ours.wait(version, LONG, wake=wake))
                for wake in (Wake.WAITERS, Wake.WORKERS)
            )
            step = a_checkpoint("r1", claimed.epoch, last) if last else None
            await remote.apply([Settle("r1", claimed.epoch, "succeeded", result="1", last=step)])
            assert await for_news > version
            assert not for_work.done()
            await remote.apply([a_submit("r2")])
            assert await for_work > version

    asyncio.run(story())


def test_work_that_comes_with_an_end_is_heard_as_work() -> None:
    async def story() -> None:
        async with two_stores() as (ours, remote, version):
            [_, [claimed]] = await remote.apply([a_submit("r1"), a_claim()])
            version = await ours.wait(version, LONG)
            for_work = asyncio.create_task(ours.wait(version, LONG, wake=Wake.WORKERS))
            await remote.apply(
                [Settle("r1", claimed.epoch, "succeeded", result="1"), a_submit("r2")]
            )
            assert await for_work > version

    asyncio.run(story())


def test_a_run_that_goes_back_is_work() -> None:
    async def story() -> None:
        async with two_stores() as (ours, remote, version):
            [_, [claimed]] = await remote.apply([a_submit("r1"), a_claim()])
            version = await ours.wait(version, LONG)
            for_work = asyncio.create_task(ours.wait(version, LONG, wake=Wake.WORKERS))
            await remote.apply([Settle("r1", claimed.epoch, "handover")])
            assert await for_work > version

    asyncio.run(story())
