"""A bus inside one event loop: for tests, and for programs whose parts talk to one another.

A topic is a name; a group is a queue behind it, made when somebody first subscribes and kept when
the last member leaves. Everything happens in one event loop and nothing is locked: **use a bus from
one loop only**."""

from __future__ import annotations

import asyncio
import weakref

from holdfast.errors import Transient
from holdfast.model.filters import EVERYTHING, Filter
from holdfast.ports.bus import MOST, Message, other_filter


class InProcessDelivery:
    """One arrival of a message."""

    def __init__(self, group: ConsumerGroup, message: Message, attempt: int) -> None:
        self.message = message
        self.attempt = attempt
        self.ended = False
        self._group = group

    async def ack(self) -> None:
        self.ended = True

    async def nack(self, delay: float = 0.0) -> None:
        self.give_back(delay)

    def give_back(self, delay: float = 0.0) -> None:
        """Let it come again, unless it has ended."""
        if self.ended:
            return
        self.ended = True
        again = InProcessDelivery(self._group, self.message, self.attempt + 1)
        if delay > 0:
            asyncio.get_running_loop().call_later(delay, self._group.waiting.put_nowait, again)
        else:
            self._group.waiting.put_nowait(again)


class ConsumerGroup:
    """The messages that the members of a group have not received yet."""

    def __init__(self, where: Filter) -> None:
        self.where = where
        self.waiting: asyncio.Queue[InProcessDelivery | None] = asyncio.Queue()
        self._listening = 0

    def offer(self, message: Message) -> None:
        if self.where.matches(message.attributes):
            self.waiting.put_nowait(InProcessDelivery(self, message, 1))

    async def take(self) -> InProcessDelivery | None:
        self._listening += 1
        try:
            return await self.waiting.get()
        finally:
            self._listening -= 1

    def wake(self) -> None:
        """Wake every waiting member: None is no delivery."""
        for _ in range(self._listening):
            self.waiting.put_nowait(None)


class Subscription:
    """One member of a group. `aclose` gives back what it took and did not end.

    A class and no async generator: that would be over for good once it is cancelled while it waits.
    """

    def __init__(self, bus: InProcessBus, group: ConsumerGroup) -> None:
        self._bus = bus
        self._group = group
        self._pending: list[InProcessDelivery] = []
        self._closed = False
        self._watched = False

    async def begun(self) -> None:
        """A subscription has begun as soon as it exists."""

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> InProcessDelivery:
        self._watch()
        while not self._closed and not self._bus.closed:
            delivery = await self._group.take()
            if delivery is not None:
                self._pending[:] = [taken for taken in self._pending if not taken.ended]
                self._pending.append(delivery)
                return delivery
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._closed = True
        self._group.wake()
        _give_back(self._pending)

    def _watch(self) -> None:
        """Also give back what a member took that was never closed, for example because its loop was
        left by `break`."""
        if not self._watched:
            self._watched = True
            loop = asyncio.get_running_loop()
            weakref.finalize(self, _give_back_soon, loop, self._pending).atexit = False


def _give_back(deliveries: list[InProcessDelivery]) -> None:
    for delivery in deliveries:
        delivery.give_back()


def _give_back_soon(loop: asyncio.AbstractEventLoop, deliveries: list[InProcessDelivery]) -> None:
    # Garbage may be collected in any thread, but the queue belongs to the loop.
    if deliveries and not loop.is_closed():
        loop.call_soon_threadsafe(_give_back, deliveries)


class InProcessBus:
    """A `Bus` for one event loop. Messages are lost with the process."""

    max_body: int | None = None

    def __init__(self) -> None:
        self.closed = False
        self._topics: dict[str, dict[str, ConsumerGroup]] = {}

    async def open(self) -> None:
        self.closed = False

    async def close(self) -> None:
        """End all subscriptions. What they had not ended waits for the next members of their
        groups."""
        self.closed = True
        for groups in self._topics.values():
            for group in groups.values():
                group.wake()

    async def publish(self, topic: str, message: Message) -> None:
        if self.closed:
            raise Transient(f"the bus is closed: message {message.id} was not published to {topic}")
        for group in self._topics.get(topic, {}).values():
            group.offer(message)

    def subscribe(
        self, topic: str, group: str, *, where: Filter = EVERYTHING, most: int = MOST
    ) -> Subscription:
        # Nothing is taken before it is asked for, so that `most` can't be exceeded.
        return Subscription(self, self._group(topic, group, where))

    def _group(self, topic: str, name: str, where: Filter) -> ConsumerGroup:
        group = self._topics.setdefault(topic, {}).setdefault(name, ConsumerGroup(where))
        if group.where != where:
            raise other_filter(topic, name, group.where.text, where)
        return group
