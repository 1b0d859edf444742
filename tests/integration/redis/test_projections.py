"""Projections on a real server: keys that others read with GET, buses of a projection's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.redis_server import fresh_prefix, shared_server

from holdfast import CommittedEvent, Context, Holdfast, Outgoing, Pipeline
from holdfast.adapters.redis.bus import RedisBus
from holdfast.adapters.redis.documents import RedisDocuments
from holdfast.adapters.redis.link import find_master
from holdfast.adapters.redis.wire import ask

SOON = 10.0


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What somebody who asks again and again is answered in the end."""
    async with asyncio.timeout(SOON):
        while not (answer := await look()):  # noqa: ASYNC110  (a plain key wakes nobody)
            await asyncio.sleep(0.02)
        return answer


def report() -> tuple[Pipeline[Any], asyncio.Event]:
    pipeline, go_on = Pipeline("report"), asyncio.Event()

    @pipeline.step
    async def clustering(input: dict[str, Any], ctx: Context) -> str:
        ctx.usage(input_tokens=10, output_tokens=1, cost=0.5)
        return "topics"

    @pipeline.step
    async def claims(clustering: str) -> str:
        await go_on.wait()
        return f"claims of {clustering}"

    return pipeline, go_on


def test_state_documents_are_plain_keys() -> None:
    async def story() -> None:
        pipeline, go_on = report()
        url = shared_server().url(fresh_prefix())
        address = RedisDocuments(url).address
        wire = await find_master(address)

        async def get(key: str) -> Any:
            return await ask(wire, "GET", f"{address.prefix}{key}")

        async def state(condition: Callable[[Any], bool]) -> Any:
            body = await get("pipeline_state:r-1")
            document = json.loads(body) if body else None
            return document if document and condition(document) else None

        async with Holdfast(
            url, [pipeline], documents=url, projections=["state_documents"], bus="none"
        ) as app:
            run = await app.submit(pipeline, {}, key="r-1")
            running = await eventually(
                lambda: state(lambda d: "clustering" in d["completedResults"])
            )
            assert (running["status"], running["reportId"]) == ("running", "r-1")
            assert await get("pipeline_lock:r-1")
            go_on.set()
            await run.result()
            completed = await eventually(lambda: state(lambda d: d["status"] == "completed"))
        assert completed["completedResults"]["clustering"] == {
            "data": "topics",
            "usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11},
            "cost": 0.5,
        }
        assert await get("pipeline_lock:r-1") is None
        ttl = await ask(wire, "TTL", f"{address.prefix}pipeline_state:r-1")
        assert 86_000 < ttl <= 86_400
        wire.close()

    asyncio.run(story())


def test_a_projection_may_have_a_bus_of_its_own() -> None:
    async def story() -> None:
        url = shared_server().url(fresh_prefix())
        pipeline = Pipeline("jobs")
        pipeline.step(name="work")(lambda: 1)

        @pipeline.publishes(events=["run.completed"], to=url)
        def results(event: CommittedEvent) -> Outgoing:
            return Outgoing("results", event.result, ordering_key=event.subject)

        @pipeline.publishes(to="redis://127.0.0.1:1/0?connect=100ms")
        def nowhere(event: CommittedEvent) -> Outgoing:
            return Outgoing("nowhere", {})

        outside = RedisBus(url)
        await outside.open()
        deliveries = outside.subscribe("results", "test")
        await deliveries.begun()
        async with Holdfast("memory:", [pipeline]) as app:
            run = await app.submit(pipeline, key="j-1")
            delivery = await asyncio.wait_for(anext(deliveries), SOON)
            assert delivery.message.id == f"jobs.results:{run.id}:4"
            assert (delivery.message.body, delivery.message.ordering_key) == (b"1", "j-1")
        await outside.close()

    asyncio.run(story())
