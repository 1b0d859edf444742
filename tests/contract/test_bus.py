"""The bus's contract over every adapter, and what each promises on top."""

from __future__ import annotations

import asyncio
import gc

import pytest
from tests.emulators import fresh_project, shared_pubsub
from tests.redis_server import fresh_prefix, shared_server, shared_valkey

from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.pubsub.bus import PubSubBus
from holdfast.adapters.redis.bus import RedisBus
from holdfast.errors import Transient
from holdfast.ports.bus import Bus
from holdfast.testing.contracts.bus import BusContract, a_message, arrival, bus_test


class TestInProcessBus(BusContract):
    def make_bus(self) -> Bus:
        return InProcessBus()

    @bus_test
    async def test_a_closed_bus_refuses_messages(self, bus: Bus) -> None:
        await bus.close()
        with pytest.raises(Transient, match="closed"):
            await bus.publish("orders", a_message())

    @bus_test
    async def test_closing_ends_those_who_wait(self, bus: Bus) -> None:
        waiting = [asyncio.create_task(anext(await self.begin(bus), None)) for _ in range(3)]
        await asyncio.sleep(0)
        await bus.close()
        assert await asyncio.wait_for(asyncio.gather(*waiting), 5.0) == [None] * 3

    @bus_test
    async def test_a_bus_opened_again_goes_on(self, bus: Bus) -> None:
        deliveries = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        await bus.publish("orders", a_message("m2"))
        await arrival(deliveries)
        await bus.close()
        assert await anext(deliveries, None) is None
        await bus.open()
        again = await self.begin(bus)
        assert {(await arrival(again)).message.id for _ in range(2)} == {"m1", "m2"}

    @bus_test
    async def test_what_a_forgotten_member_held_comes_again(self, bus: Bus) -> None:
        async def take_one_and_go() -> None:
            async for _ in await self.begin(bus):
                break

        successor = await self.begin(bus)
        await bus.publish("orders", a_message("m1"))
        await take_one_and_go()
        gc.collect()
        again = await arrival(successor)
        assert (again.message.id, again.attempt) == ("m1", 2)


class TestRedisBus(BusContract):
    def make_bus(self) -> Bus:
        return RedisBus(shared_server().url(fresh_prefix()))


class TestValkeyBus(BusContract):
    def make_bus(self) -> Bus:
        return RedisBus(shared_valkey().url(fresh_prefix()))


class TestPubSubBus(BusContract):
    """Subscriptions without a dead-letter topic, whose deliveries Pub/Sub does not count."""

    def make_bus(self) -> Bus:
        return PubSubBus(f"pubsub://{fresh_project()}?emulator={shared_pubsub().host}")
