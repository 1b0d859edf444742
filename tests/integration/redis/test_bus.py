"""What the bus on Redis promises on top of the contract: across processes, deaths, outages and
other systems."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.redis.helpers import a_server
from tests.redis_server import RedisServer, fresh_prefix, shared_server

from holdfast import Holdfast, Pipeline
from holdfast.adapters.redis import bus as module
from holdfast.adapters.redis.bus import RedisBus
from holdfast.errors import ConfigurationError, Transient
from holdfast.model.cloudevent import TYPE_PREFIX
from holdfast.model.filters import Filter
from holdfast.ports.bus import Delivery
from holdfast.testing.contracts.bus import a_message, arrival, received


@asynccontextmanager
async def a_bus(url: str | None = None) -> AsyncIterator[RedisBus]:
    bus = RedisBus(url or shared_server().url(fresh_prefix()))
    await bus.open()
    try:
        yield bus
    finally:
        await bus.close()


async def begun(
    bus: RedisBus, topic: str = "orders", group: str = "g1", **options: Any
) -> AsyncIterator[Delivery]:
    deliveries = bus.subscribe(topic, group, **options)
    await deliveries.begun()
    return deliveries


def stream(bus: RedisBus, topic: str = "orders") -> str:
    return f"{bus.address.prefix}holdfast:topic:{topic}"


def test_another_process_receives_what_this_one_publishes() -> None:
    async def story() -> None:
        url = shared_server().url(fresh_prefix())
        async with a_bus(url) as here, a_bus(url) as there:
            deliveries = await begun(there)
            await here.publish("orders", a_message("m1", b"\x00\xff", kind="a"))
            assert await received(deliveries, 1) == ["m1"]

    asyncio.run(story())


def test_what_other_systems_add_is_understood() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            deliveries = await begun(bus, where=Filter('attributes.kind = "a"'))
            redis = shared_server()
            redis.call("XADD", stream(bus), "*", "body", "other", "kind", "b")
            entry_id = redis.call("XADD", stream(bus), "*", "body", '{"x":1}', "kind", "a")
            redis.call(
                "XADD", stream(bus), "*", "body", "y", "id", "m9", "attributes", '{"kind":"a"}'
            )
            first, second = await arrival(deliveries), await arrival(deliveries)
            assert (first.message.id, first.message.body) == (entry_id, b'{"x":1}')
            assert (second.message.id, dict(second.message.attributes)) == ("m9", {"kind": "a"})

    asyncio.run(story())


@pytest.mark.parametrize("raw", ["no JSON", "[1]", '{"kind":1}', b"\xff{}"])
def test_attributes_that_can_not_be_read_are_an_attribute(raw: str | bytes) -> None:
    async def story() -> None:
        async with a_bus() as bus:
            deliveries = await begun(bus)
            shared_server().call(
                "XADD", stream(bus), "*", "body", "x", "attributes", raw, "kind", b"\xe9"
            )
            shared_server().call("XADD", stream(bus), "*", "body", "y", "id", b"m\xe9")
            first, second = await arrival(deliveries), await arrival(deliveries)
            text = raw if isinstance(raw, str) else raw.decode(errors="backslashreplace")
            assert dict(first.message.attributes) == {"attributes": text, "kind": "\\xe9"}
            assert (second.message.id, second.message.body) == ("m\\xe9", b"y")

    asyncio.run(story())


def test_what_is_published_right_after_subscribing_is_not_missed() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            await begun(bus, group="other")  # the topic is there
            await bus.publish("orders", a_message("before"))
            await asyncio.sleep(0.01)
            deliveries = bus.subscribe("orders", "g1")
            bus._links.here()  # the subscription has not been told to the server yet
            await bus.publish("orders", a_message("after"))
            assert await received(deliveries, 1) == ["after"]

    asyncio.run(story())


def test_nobody_keeps_messages_that_nobody_wants() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            await bus.publish("orders", a_message("m1"))
            assert shared_server().call("EXISTS", stream(bus)) == "0"

    asyncio.run(story())


# --- members that die ---


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEAD_AFTER", 0.2)
    monkeypatch.setattr(module, "HEARTBEAT", 0.05)
    monkeypatch.setattr(module, "POLL", 0.05)


def die(deliveries: Any) -> None:
    """As if its process had been killed: it gives no more signs of life, and does not say
    good-bye."""
    deliveries._heartbeats.cancel()
    deliveries._bus._subscriptions.discard(deliveries)


@pytest.mark.usefixtures("impatient")
def test_what_a_dead_member_held_goes_to_the_others() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            first, second = await begun(bus), await begun(bus)
            await bus.publish("orders", a_message("m1"))
            delivery = await arrival(first)
            die(first)
            again = await arrival(second)
            assert (again.message.id, again.attempt) == ("m1", 2)
            await delivery.ack()  # too late: it is somebody else's now
            await again.nack()
            assert (await arrival(second)).attempt == 3

    asyncio.run(story())


@pytest.mark.usefixtures("impatient")
def test_what_a_slow_member_works_on_stays_with_it() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            slow, other = await begun(bus), await begun(bus)
            await bus.publish("orders", a_message("m1"))
            delivery = await arrival(slow)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(other), 0.6)
            await delivery.ack()
            assert shared_server().call("XPENDING", stream(bus), "g1").splitlines()[0] == "0"

    asyncio.run(story())


@pytest.mark.usefixtures("impatient")
def test_what_waits_for_its_time_is_not_taken_for_abandoned() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            deliveries, other = await begun(bus), await begun(bus)
            await bus.publish("orders", a_message("m1"))
            await (await arrival(deliveries)).nack(1.0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(other), 0.6)
            assert (await arrival(other)).attempt == 2

    asyncio.run(story())


@pytest.mark.usefixtures("impatient")
def test_a_message_that_kills_its_consumers_is_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DROPPED", 2)

    async def story() -> None:
        async with a_bus() as bus:
            for _ in range(3):
                victim = await begun(bus)
                await bus.publish("orders", a_message("poison", b"\x00")) if _ == 0 else None
                assert (await arrival(victim)).message.id == "poison"
                die(victim)
            survivor = await begun(bus)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(survivor), 0.6)
            await bus.publish("orders", a_message("m2"))
            assert await received(survivor, 1) == ["m2"]
            entries = shared_server().call("XRANGE", stream(bus) + ":dead", "-", "+").splitlines()
            assert {"poison", "g1"} <= set(entries)

    asyncio.run(story())


@pytest.mark.usefixtures("impatient")
def test_what_a_forgotten_member_held_comes_again() -> None:
    async def story() -> None:
        async with a_bus() as bus:

            async def take_one_and_go() -> None:
                async for _ in await begun(bus):
                    break

            successor = await begun(bus)
            await bus.publish("orders", a_message("m1"))
            await asyncio.wait_for(take_one_and_go(), 5.0)
            gc.collect()
            assert (await arrival(successor)).attempt == 2

    asyncio.run(story())


def test_messages_taken_ahead_and_never_seen_come_again_as_new() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            deliveries: Any = await begun(bus)
            for number in range(3):
                await bus.publish("orders", a_message(f"m{number}"))
            delivery = await arrival(deliveries)
            await deliveries.aclose()
            successor = await begun(bus)
            again = sorted(
                [(d.message.id, d.attempt) for d in [await arrival(successor) for _ in range(3)]]
            )
            assert again == sorted(
                (f"m{n}", 2 if f"m{n}" == delivery.message.id else 1) for n in range(3)
            )

    asyncio.run(story())


# --- housekeeping ---


def test_messages_that_all_groups_have_ended_are_forgotten() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            first, second = await begun(bus, group="g1"), await begun(bus, group="g2")
            for number in range(20):
                await bus.publish("orders", a_message(f"m{number}"))
            await received(first, 20)
            await first.tidy()  # type: ignore[attr-defined]
            assert shared_server().call("XLEN", stream(bus)) == "20"  # the other group needs them
            await received(second, 20)
            await first.tidy()  # type: ignore[attr-defined]
            assert shared_server().call("XLEN", stream(bus)) == "1"
            await bus.publish("orders", a_message("more"))
            assert await received(second, 1) == ["more"]

    asyncio.run(story())


def test_members_of_a_group_have_one_filter() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            await begun(bus, where=Filter('attributes.kind = "a"'))
            with pytest.raises(ConfigurationError, match="use another group"):
                await begun(bus, where=Filter('attributes.kind = "b"'))
            with pytest.raises(ConfigurationError, match="use another group"):
                await anext(bus.subscribe("orders", "g1"))

    asyncio.run(story())


# --- outages ---


def test_a_closed_bus_refuses_messages_and_ends_those_who_wait() -> None:
    async def story() -> None:
        async with a_bus() as bus:
            waiting = [asyncio.create_task(anext(await begun(bus), None)) for _ in range(3)]
            await asyncio.sleep(0)
            await bus.close()
            assert await asyncio.wait_for(asyncio.gather(*waiting), 5.0) == [None] * 3
            with pytest.raises(Transient, match="closed"):
                await bus.publish("orders", a_message())

    asyncio.run(story())


def test_a_subscription_outlives_a_restart_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0.05)

    async def story(redis: RedisServer) -> None:
        async with a_bus(redis.url()) as bus:
            deliveries = await begun(bus)
            await bus.publish("orders", a_message("m1"))
            delivery = await arrival(deliveries)
            waiting = asyncio.create_task(arrival(deliveries))
            redis.kill()
            with pytest.raises(Transient, match="can't be reached"):
                await bus.publish("orders", a_message("lost"))
            await delivery.ack()  # can't be told: it comes again
            redis.start()
            await publish_when_it_is_back(bus, "m2")
            assert (await waiting).message.id == "m2"

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


async def publish_when_it_is_back(bus: RedisBus, id: str) -> None:
    while True:
        try:
            return await bus.publish("orders", a_message(id))
        except Transient:
            await asyncio.sleep(0.02)


def test_a_server_that_has_lost_everything_is_subscribed_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "POLL", 0.05)

    async def story(redis: RedisServer) -> None:
        async with a_bus(redis.url()) as bus:
            deliveries = await begun(bus)
            waiting = asyncio.create_task(arrival(deliveries))
            redis.call("FLUSHALL")
            await until(lambda: redis.call("EXISTS", stream(bus)) == "1")
            await bus.publish("orders", a_message("m1"))
            assert (await waiting).message.id == "m1"

    with a_server() as redis:
        asyncio.run(story(redis))


# --- with the engine ---


def test_messages_become_runs_and_events_are_relayed() -> None:
    double = Pipeline("double", input=int)

    @double.step
    async def doubled(input: int) -> int:
        return input * 2

    async def story() -> None:
        url = shared_server().url(fresh_prefix())
        async with a_bus(url) as outside, Holdfast(url, [double], bus=url) as app:
            events = await begun(
                outside,
                "holdfast-events",
                "audit",
                where=Filter(f'attributes.ce-type = "{TYPE_PREFIX}.run.completed.v1"'),
            )
            await app.receive("numbers", double)
            for number in range(5):
                await outside.publish("numbers", a_message(f"n{number}", str(number).encode()))
            ids = [(await arrival(events)).message.id for _ in range(5)]
            assert len({id.split(":")[1] for id in ids}) == 5

    asyncio.run(story())
