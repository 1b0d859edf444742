"""What no subscription of a topic wants is buried: a filter that lets nothing through would lose it
in silence.

Every subscription with a filter is known by a record. A group of its own, which all processes
share, receives everything, and buries what none of the known filters wants."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from holdfast.engine.incoming import Incoming
from holdfast.engine.receiver import bury, nack
from holdfast.engine.runtime import Runtime
from holdfast.errors import Transient
from holdfast.model.damage import unless_damaged
from holdfast.model.filters import Filter
from holdfast.model.names import path_part
from holdfast.model.receive import Receive
from holdfast.ports.bus import Bus, Deliveries, Delivery

PREFIX = "receive:"
GROUP = "holdfast-unmatched."
"""What the names of such groups begin with, before the topic: on some buses groups of different
topics share one space of names."""
KEPT = 30 * 86_400.0
"""Seconds that a subscription is known after a process has served it."""
REGISTER_EVERY = 3600.0


class StoredSubscription(msgspec.Struct, frozen=True):
    """What is kept of a subscription."""

    filter: str


_decode = msgspec.json.Decoder(StoredSubscription).decode


async def register(runtime: Runtime, receive: Receive) -> None:
    """Make a subscription's filter known to all processes."""
    key = f"{_prefix(receive.topic)}{path_part(receive.group)}"
    page = await runtime.records.get(key)
    version = page.records[0].version if page.records else None
    # Refused if another process does the same just now: then it is known.
    value = msgspec.json.encode(StoredSubscription(receive.filter)).decode()
    await runtime.records.put(key, value, expected=version, ttl=KEPT)


async def keep_registered(runtime: Runtime, receive: Receive) -> None:
    while True:
        await asyncio.sleep(REGISTER_EVERY)
        await register(runtime, receive)


async def known_filters(runtime: Runtime, topic: str) -> set[Filter]:
    page = await runtime.records.list(_prefix(topic), limit=1000)
    return {_filter(record.value) for record in page.records}


def _filter(record: str) -> Filter:
    """One that can't be read may want everything: nothing is buried that it might have wanted."""
    known = unless_damaged(_decode, record)
    return Filter(known.filter if known is not None else "")


def _prefix(topic: str) -> str:
    return f"{PREFIX}{path_part(topic)}:"


class Unmatched:
    """Buries what no subscription of one topic wants."""

    def __init__(self, runtime: Runtime, bus: Bus | None, topic: str, tenant: str) -> None:
        self._runtime = runtime
        self._bus = bus
        self._topic = topic
        self._tenant = tenant
        self._filters: set[Filter] = set()

    async def subscribe(self) -> Deliveries:
        assert self._bus is not None, "messages that are pushed have no subscription here"
        deliveries = self._bus.subscribe(self._topic, f"{GROUP}{self._topic}")
        await deliveries.begun()
        return deliveries

    async def run(self, deliveries: Deliveries | None = None) -> None:
        deliveries = deliveries or await self.subscribe()
        async with aclosing(deliveries):
            async for delivery in deliveries:
                await self.receive(delivery)

    async def receive(self, delivery: Delivery) -> None:
        try:
            if not await self._is_wanted(delivery):
                incoming = Incoming(delivery.message)
                await bury(
                    self._runtime, self._topic, incoming.message, self._reason(), self._tenant
                )
        except Transient as error:
            await nack(delivery, self._topic, error)
        else:
            await delivery.ack()

    async def _is_wanted(self, delivery: Delivery) -> bool:
        """By a subscription that was known before, or by one that is known by now."""
        attributes = delivery.message.attributes
        if any(known.matches(attributes) for known in self._filters):
            return True
        self._filters = await known_filters(self._runtime, self._topic)
        return any(known.matches(attributes) for known in self._filters)

    def _reason(self) -> str:
        listed = "; ".join(sorted(known.text for known in self._filters)) or "there is none"
        return f"no subscription of topic {self._topic} wants it (filters: {listed})"
