"""The contract of the `Bus` port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from holdfast.errors import ConfigurationError
from holdfast.model.filters import EVERYTHING, Filter
from holdfast.ports.bus import Bus, Deliveries, Delivery, Message

SOON = 5.0
"""Seconds after which a delivery counts as missing."""
DELAY = 0.05


def a_message(id: str = "m1", body: bytes = b"{}", **attributes: str) -> Message:
    return Message(id, body, attributes)


async def arrival(deliveries: AsyncIterator[Delivery]) -> Delivery:
    return await asyncio.wait_for(anext(deliveries), SOON)


async def stop_consuming(deliveries: AsyncIterator[Delivery]) -> None:
    """Close a consumer's iterator, as a consumer that stops does."""
    await deliveries.aclose()  # type: ignore[attr-defined]


async def received(deliveries: AsyncIterator[Delivery], count: int) -> list[str]:
    """The ids of the next deliveries, each acknowledged."""
    ids: list[str] = []
    for _ in range(count):
        delivery = await arrival(deliveries)
        ids.append(delivery.message.id)
        await delivery.ack()
    return ids


def bus_test(test: Callable[[Any, Bus], Awaitable[None]]) -> Callable[[Any], None]:
    """Turn `async def test_…(self, bus)` into a test that runs it with an open bus."""

    def run_test(self: BusContract) -> None:
        asyncio.run(self.run_test(test))

    # Not functools.wraps: pytest would look through it and take `bus` for a fixture.
    run_test.__name__, run_test.__qualname__, run_test.__doc__ = (
        test.__name__,
        test.__qualname__,
        test.__doc__,
    )
    return run_test


class BusContract:
    """Subclass it and define `make_bus`, which gives a bus without messages in each test."""

    def make_bus(self) -> Bus:
        raise NotImplementedError("say how to make the bus under test")

    async def begin(
        self,
        bus: Bus,
        topic: str = "orders",
        group: str = "group-1",
        where: Filter = EVERYTHING,
    ) -> Deliveries:
        """Subscribe, and return when that has begun."""
        deliveries = bus.subscribe(topic, group, where=where)
        await deliveries.begun()
        return deliveries

    async def run_test(self, test: Callable[[Any, Bus], Awaitable[None]]) -> None:
        bus = self.make_bus()
        await bus.open()
        try:
            await test(self, bus)
        finally:
            await bus.close()

    # --- delivering ---

    @bus_test
    async def test_a_message_arrives_as_it_was_published(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        body = bytes(range(256))
        await bus.publish("orders", Message("m1", body, {"kind": "naïve ☃", "empty": ""}))
        delivery = await arrival(deliveries)
        assert (delivery.message.id, delivery.message.body) == ("m1", body)
        assert dict(delivery.message.attributes) == {"kind": "naïve ☃", "empty": ""}
        assert delivery.message.ordering_key == ""
        assert delivery.attempt == 1

    @bus_test
    async def test_an_ordering_key_arrives_with_its_message(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        message = Message("m1", b"{}", {"kind": "a"}, ordering_key="job ☃")
        await bus.publish("orders", message)
        assert (await arrival(deliveries)).message == message

    @bus_test
    async def test_an_acknowledged_message_does_not_come_again(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        await (await arrival(deliveries)).ack()
        await stop_consuming(deliveries)
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m2"))
        assert await received(deliveries, 1) == ["m2"]

    @bus_test
    async def test_a_refused_message_comes_again_and_is_counted(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1", b"same"))
        for attempt in (1, 2, 3):
            delivery = await arrival(deliveries)
            assert (delivery.message.id, delivery.message.body, delivery.attempt) == (
                "m1",
                b"same",
                attempt,
            )
            await delivery.nack()

    @bus_test
    async def test_a_refused_message_does_not_come_before_its_delay(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        delivery = await arrival(deliveries)
        refused = asyncio.get_running_loop().time()
        await delivery.nack(DELAY)
        again = await arrival(deliveries)
        assert (again.message.id, again.attempt) == ("m1", 2)
        assert asyncio.get_running_loop().time() - refused >= DELAY * 0.9

    @bus_test
    async def test_a_message_that_waits_does_not_hold_up_the_others(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        await (await arrival(deliveries)).nack(60.0)
        await bus.publish("orders", a_message("m2"))
        assert await received(deliveries, 1) == ["m2"]

    @bus_test
    async def test_after_an_ack_a_nack_does_nothing(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        delivery = await arrival(deliveries)
        await delivery.ack()
        await delivery.ack()
        await delivery.nack()
        await bus.publish("orders", a_message("m2"))
        assert await received(deliveries, 1) == ["m2"]

    @bus_test
    async def test_after_a_nack_an_ack_does_nothing(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        delivery = await arrival(deliveries)
        await delivery.nack()
        await delivery.ack()
        await delivery.nack()
        assert (await arrival(deliveries)).attempt == 2
        await bus.publish("orders", a_message("m2"))
        assert (await arrival(deliveries)).message.id == "m2"

    @bus_test
    async def test_what_a_consumer_left_unfinished_comes_again(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        for number in range(3):
            await bus.publish("orders", a_message(f"m{number}"))
        await (await arrival(deliveries)).ack()
        assert {(await arrival(deliveries)).message.id for _ in range(2)} == {"m1", "m2"}
        await stop_consuming(deliveries)
        successor = await self.begin(bus)
        again = [await arrival(successor) for _ in range(2)]
        assert sorted((delivery.message.id, delivery.attempt) for delivery in again) == [
            ("m1", 2),
            ("m2", 2),
        ]

    @bus_test
    async def test_what_a_cancelled_consumer_held_comes_again(self, bus: Bus) -> None:
        working = asyncio.Event()

        async def consume(deliveries: AsyncIterator[Delivery]) -> None:
            async with aclosing(deliveries):  # type: ignore[type-var]
                async for _ in deliveries:
                    working.set()
                    await asyncio.Event().wait()

        consumer = asyncio.create_task(consume(await self.begin(bus)))
        await bus.publish("orders", a_message("m1"))
        await asyncio.wait_for(working.wait(), SOON)
        consumer.cancel()
        await asyncio.wait([consumer])
        again = await arrival(await self.begin(bus))
        assert (again.message.id, again.attempt) == ("m1", 2)

    @bus_test
    async def test_a_consumer_that_waits_in_vain_goes_on_afterwards(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(deliveries), 0.01)
        await bus.publish("orders", a_message("m1"))
        assert await received(deliveries, 1) == ["m1"]

    @bus_test
    async def test_a_delivery_that_outlives_its_consumer_ends_nothing(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        late = await arrival(deliveries)
        await stop_consuming(deliveries)
        await late.ack()
        again = await arrival(await self.begin(bus))
        assert (again.message.id, again.attempt) == ("m1", 2)

    @bus_test
    async def test_messages_wait_for_a_slow_consumer(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        for number in range(100):
            await bus.publish("orders", a_message(f"m{number}"))
        assert sorted(await received(deliveries, 100)) == sorted(
            f"m{number}" for number in range(100)
        )

    @bus_test
    async def test_messages_wait_while_the_group_has_no_member(self, bus: Bus) -> None:
        await stop_consuming(await self.begin(bus))
        await bus.publish("orders", a_message("m1"))
        assert await received(await self.begin(bus), 1) == ["m1"]

    # --- topics and groups ---

    @bus_test
    async def test_publishing_where_nobody_listens_is_no_error(self, bus: Bus) -> None:
        await bus.publish("nobody", a_message("m1"))

    @bus_test
    async def test_topics_are_apart(self, bus: Bus) -> None:
        deliveries = await self.begin(bus, "orders")
        await bus.publish("invoices", a_message("m1"))
        await bus.publish("orders", a_message("m2"))
        assert await received(deliveries, 1) == ["m2"]

    @bus_test
    async def test_each_group_gets_every_message(self, bus: Bus) -> None:
        groups = [await self.begin(bus, group=name) for name in ("group-1", "group-2", "group-3")]
        for number in range(3):
            await bus.publish("orders", a_message(f"m{number}"))
        for deliveries in groups:
            assert sorted(await received(deliveries, 3)) == ["m0", "m1", "m2"]

    @bus_test
    async def test_attempts_are_counted_for_each_group(self, bus: Bus) -> None:
        first, other = (
            await self.begin(bus, group="group-1"),
            await self.begin(bus, group="group-2"),
        )
        await bus.publish("orders", a_message("m1"))
        await (await arrival(first)).nack()
        assert (await arrival(first)).attempt == 2
        assert (await arrival(other)).attempt == 1

    @bus_test
    async def test_members_of_a_group_share_the_work(self, bus: Bus) -> None:
        members = [await self.begin(bus) for _ in range(3)]
        bodies: list[str] = []
        everything = asyncio.Event()

        async def consume(deliveries: AsyncIterator[Delivery]) -> None:
            async for delivery in deliveries:
                bodies.append(delivery.message.id)
                await delivery.ack()
                if len(bodies) >= 30:
                    everything.set()

        tasks = [asyncio.create_task(consume(deliveries)) for deliveries in members]
        for number in range(30):
            await bus.publish("orders", a_message(f"m{number}"))
        await asyncio.wait_for(everything.wait(), SOON)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert sorted(bodies) == sorted(f"m{number}" for number in range(30))

    @bus_test
    async def test_a_subscription_receives_what_is_published_after_it_began(self, bus: Bus) -> None:
        await bus.publish("orders", a_message("before"))
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("after"))
        assert await received(deliveries, 1) == ["after"]

    # --- filters ---

    @bus_test
    async def test_a_filter_wants_equal_values(self, bus: Bus) -> None:
        deliveries = await self.begin(bus, where=Filter('attributes.kind = "a"'))
        await bus.publish("orders", a_message("other", kind="b"))
        await bus.publish("orders", a_message("none"))
        await bus.publish("orders", a_message("match", kind="a", more="x"))
        assert await received(deliveries, 1) == ["match"]

    @bus_test
    async def test_a_filter_can_want_an_attribute_to_be_absent(self, bus: Bus) -> None:
        deliveries = await self.begin(bus, where=Filter("NOT attributes:kind"))
        await bus.publish("orders", a_message("present", kind="a"))
        await bus.publish("orders", a_message("empty", kind=""))
        await bus.publish("orders", a_message("absent", other="a"))
        assert await received(deliveries, 1) == ["absent"]

    @bus_test
    async def test_a_filter_wants_all_it_names(self, bus: Bus) -> None:
        deliveries = await self.begin(
            bus, where=Filter('attributes.kind = "a" AND NOT attributes:test')
        )
        await bus.publish("orders", a_message("m1", kind="a", test="1"))
        await bus.publish("orders", a_message("m2", kind="b"))
        await bus.publish("orders", a_message("m3", kind="a"))
        assert await received(deliveries, 1) == ["m3"]

    @bus_test
    async def test_a_filter_can_want_one_of_several_and_beginnings(self, bus: Bus) -> None:
        where = Filter('attributes.kind = "a" OR hasPrefix(attributes.lang, "en-")')
        deliveries = await self.begin(bus, where=where)
        await bus.publish("orders", a_message("m1", kind="b", lang="fr-FR"))
        await bus.publish("orders", a_message("m2", kind="b", lang="en-GB"))
        await bus.publish("orders", a_message("m3", kind="a"))
        assert sorted(await received(deliveries, 2)) == ["m2", "m3"]

    @bus_test
    async def test_members_of_a_group_have_one_filter(self, bus: Bus) -> None:
        where = Filter('attributes.kind = "a"')
        await self.begin(bus, where=where)
        await self.begin(bus, where=where)
        for other in (EVERYTHING, Filter('attributes.kind = "b"')):
            try:
                await self.begin(bus, where=other)
            except ConfigurationError as error:
                assert "use another group" in str(error)
            else:
                raise AssertionError("another filter was accepted")

    @bus_test
    async def test_one_groups_filter_is_not_anothers(self, bus: Bus) -> None:
        some, every = (
            await self.begin(bus, group="group-1", where=Filter('attributes.kind = "a"')),
            await self.begin(bus, group="group-2"),
        )
        await bus.publish("orders", a_message("m1", kind="b"))
        await bus.publish("orders", a_message("m2", kind="a"))
        assert await received(some, 1) == ["m2"]
        assert sorted(await received(every, 2)) == ["m1", "m2"]

    # --- open and close ---

    @bus_test
    async def test_opening_and_closing_twice_is_harmless(self, bus: Bus) -> None:
        await bus.open()
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        assert await received(deliveries, 1) == ["m1"]
        await bus.close()
        await bus.close()
