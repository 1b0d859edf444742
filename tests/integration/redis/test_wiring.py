"""A URL is all it takes: the app, the command line, and two processes that share a server."""

from __future__ import annotations

import asyncio

from tests.redis_server import fresh_prefix, shared_server

from holdfast import Holdfast, Pipeline, bootstrap
from holdfast.adapters.redis.store import RedisStore
from holdfast.model.clock import SystemClock


def test_the_schemes_are_known() -> None:
    for scheme, tls in (("redis", False), ("rediss", True)):
        store = bootstrap.make_store(f"{scheme}://h:1/2?prefix=x:&pool=3&timeout=1", SystemClock())
        assert isinstance(store, RedisStore)
        assert (store.address.tls, store.address.prefix, store.address.pool) == (tls, "x:", 3)


def test_a_server_has_no_place_for_blobs_beside_it() -> None:
    assert bootstrap.default_blobs("redis://h/0") is None
    assert bootstrap.missing_file("redis://h/0") is None


def test_one_app_submits_and_another_executes() -> None:
    double = Pipeline("double", input=int)

    @double.step
    async def doubled(input: int) -> int:
        return input * 2

    async def story() -> None:
        url = shared_server().url(fresh_prefix())
        async with Holdfast(url, [double], worker=False) as client, Holdfast(url, [double]):
            runs = await asyncio.gather(
                *[client.submit(double, number, key=f"k{number}") for number in range(30)]
            )
            results = await asyncio.wait_for(asyncio.gather(*[run.result() for run in runs]), 20.0)
            assert results == [2 * number for number in range(30)]
            again = await client.submit(double, 7, key="k7")
            assert (again.created, again.id) == (False, runs[7].id)

    asyncio.run(story())
