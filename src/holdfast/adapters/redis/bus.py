"""A bus on Redis Streams: a topic is a stream, a group is a consumer group, what waits is a sorted
set beside it.

A message that was delivered stays pending in its group until it is ended. Members give signs of
life for what they hold; what a dead member held goes to the others. Topics that nobody has ever
subscribed to keep nothing. A message that all groups have ended is forgotten; a group that nobody
reads any more keeps its messages until it is deleted (`XGROUP DESTROY
<prefix>holdfast:topic:<topic> <group>`).

Other systems publish with `XADD <prefix>holdfast:topic:<topic> * body …`: a field `id` names the
message (otherwise its place in the stream does), a field `attributes` is a JSON object of strings,
a field `ordering_key` says what it belongs to, and any other field is an attribute."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.adapters.notifier import Notifier
from holdfast.adapters.redis import address as addresses
from holdfast.adapters.redis import server
from holdfast.adapters.redis.link import Link, Links, examine
from holdfast.adapters.redis.listener import Listener
from holdfast.adapters.redis.scripts import Script, bus_scripts
from holdfast.adapters.redis.wire import Argument, ReplyError
from holdfast.errors import Transient
from holdfast.model.filters import EVERYTHING, Filter
from holdfast.model.ids import new_token
from holdfast.ports.bus import MOST, Message, other_filter

log = logging.getLogger("holdfast.redis")

PREFETCH = 16
"""Messages that a member takes at once."""
DEAD_AFTER = 30.0
"""Seconds without a sign of life after which what a member held goes to the others."""
HEARTBEAT = DEAD_AFTER / 3
MAX_DROPPED = 5
"""How many members may die with a message in their hands before it is put aside."""
POLL = 1.0
"""The safety net under the notifier, and how soon a message of another system is noticed, in
seconds."""
NO_FILTER = "{}"
"""How a group that wants everything is stored: as in 0.1."""
LEFT_AFTER = 3600.0
TIDY_EVERY = 30.0

_encode = msgspec.json.Encoder().encode
_attributes = msgspec.json.Decoder(dict[str, str]).decode


class RedisDelivery:
    """One arrival of a message."""

    __slots__ = ("_subscription", "attempt", "ended", "entry_id", "message")

    def __init__(
        self, subscription: Subscription, entry_id: str, attempt: int, message: Message
    ) -> None:
        self.message = message
        self.attempt = attempt
        self.entry_id = entry_id
        self.ended = False
        self._subscription = subscription

    async def ack(self) -> None:
        await self._end("ack", 0)

    async def nack(self, delay: float = 0.0) -> None:
        await self._end("nack", delay)

    async def _end(self, ending: str, delay: float) -> None:
        if not self.ended:
            self.ended = True
            await self._subscription.finish([(self, ending, delay)])


class Subscription:
    """One member of a group. `aclose` gives back what it took and did not end."""

    def __init__(self, bus: RedisBus, topic: str, group: str, where: Filter, most: int) -> None:
        self._bus = bus
        self._most = most
        self._topic = topic
        self._group = group
        self._where = where
        self._member = new_token()
        self._requested_at = asyncio.get_running_loop().time()
        self._ready: deque[RedisDelivery] = deque()
        self._held: dict[str, RedisDelivery] = {}
        self._waiting = 0
        self._last_seen = 0
        self._due: float | None = None
        self._closed = False
        self._fill_task: asyncio.Task[None] | None = None
        self._begin_task = asyncio.create_task(self._begin())
        self._heartbeats: asyncio.Task[None] | None = None

    async def begun(self) -> None:
        """Return when the group exists, however long the server is away."""
        await asyncio.shield(self._begin_task)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> RedisDelivery:
        while not self._closed and not self._bus.closed:
            if self._ready:
                return self._ready.popleft()
            await self._next()
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._bus.notifier(self._topic).notify()
        if self._heartbeats is not None:
            self._heartbeats.cancel()
        await asyncio.wait(
            [self._fill_task or self._begin_task]
        )  # what is being taken has to be given back too
        await self._give_back()

    async def _give_back(self) -> None:
        unseen, self._ready = set(self._ready), deque()
        held = [delivery for delivery in self._held.values() if not delivery.ended]
        for delivery in held:
            delivery.ended = True
        await self.finish([(d, "return" if d in unseen else "nack", 0.0) for d in held])

    # --- receiving ---

    async def _next(self) -> None:
        """Wait for messages. They are taken by a task of its own: who gives up waiting must not
        lose any."""
        if self._fill_task is None or self._fill_task.done():
            self._fill_task = asyncio.create_task(self._fill())
        self._waiting += 1
        try:
            await asyncio.shield(self._fill_task)
        finally:
            self._waiting -= 1

    async def _fill(self) -> None:
        await self.begun()
        if self._heartbeats is None:
            self._heartbeats = asyncio.create_task(_send_heartbeats(weakref.ref(self)))
        while self._waiting and not self._ready and not self._closed and not self._bus.closed:
            try:
                await self._take()
            except Transient as error:
                log.warning("topic %s: can't receive: %s", self._topic, error)
                await asyncio.sleep(POLL)
                continue
            if not self._ready and not self._closed:
                timeout = POLL if self._due is None else min(POLL, self._due)
                self._last_seen = await self._bus.notifier(self._topic).wait(
                    self._last_seen, timeout
                )

    async def _take(self) -> None:
        limits = (PREFETCH, round(DEAD_AFTER * 1000), MAX_DROPPED)
        try:
            rows, due = await self._bus.call(
                self._bus.scripts.take, self._topic, self._group, self._member, *limits
            )
        except Transient as error:
            if "NOGROUP" not in str(error):
                raise
            await self._begin()  # the server has lost its data
            return
        self._due = due / 1000 if due >= 0 else None
        unwanted = [delivery for delivery in map(self._delivery, rows) if not self._offer(delivery)]
        if unwanted:
            await self.finish([(delivery, "ack", 0.0) for delivery in unwanted])

    def _offer(self, delivery: RedisDelivery) -> bool:
        """Keep a delivery if the filter lets it through."""
        self._held[delivery.entry_id] = delivery
        if not self._where.matches(delivery.message.attributes):
            delivery.ended = True
            return False
        self._ready.append(delivery)
        return True

    def _delivery(self, row: Any) -> RedisDelivery:
        entry_id, attempt, flat = row
        return RedisDelivery(self, entry_id.decode(), attempt, message_of(entry_id, flat))

    # --- ending ---

    async def finish(self, deliveries: Iterable[tuple[RedisDelivery, str, float]]) -> None:
        """Tell the group. When it can't be told, they come again: that is all that can happen."""
        arguments: list[Argument] = []
        for delivery, ending, seconds in deliveries:
            if self._held.pop(delivery.entry_id, None) is not None:
                arguments += [delivery.entry_id, ending, round(seconds * 1000)]
        if not arguments:
            return
        try:
            await self._finish(arguments)
        except Transient as error:
            log.warning(
                "topic %s: can't end deliveries, they will come again: %s", self._topic, error
            )

    async def send_heartbeat(self) -> None:
        """Keep what is held, and forget what somebody else has by now."""
        held = [entry_id for entry_id, delivery in self._held.items() if not delivery.ended]
        lost = (
            await self._finish([part for entry_id in held for part in (entry_id, "keep", 0)])
            if held
            else []
        )
        for entry_id in lost:
            if (delivery := self._held.pop(entry_id.decode(), None)) is not None:
                delivery.ended = True

    async def tidy(self) -> None:
        await self._bus.call(self._bus.scripts.tidy, self._topic, round(LEFT_AFTER * 1000))

    async def _finish(self, arguments: list[Argument]) -> list[bytes]:
        member = (self._group, self._member, self._bus.channel, self._topic)
        return await self._bus.call(self._bus.scripts.finish, self._topic, *member, *arguments)

    # --- beginning ---

    async def _begin(self) -> None:
        where = self._where.text or NO_FILTER
        while not self._closed:
            ago = asyncio.get_running_loop().time() - self._requested_at
            try:
                stored = await self._bus.call(
                    self._bus.scripts.begin, self._topic, self._group, where, ceil(ago * 1000)
                )
            except Transient as error:
                log.warning("topic %s: can't subscribe: %s", self._topic, error)
                await asyncio.sleep(POLL)
                continue
            if stored.decode() != where:
                raise other_filter(self._topic, self._group, stored.decode(), self._where)
            return


async def _send_heartbeats(forgotten: weakref.ref[Subscription]) -> None:
    """While somebody has the subscription; what one held that was forgotten goes to the others."""
    rounds = 0
    while True:
        await asyncio.sleep(HEARTBEAT)
        subscription = forgotten()
        if subscription is None:
            return
        rounds += 1
        try:
            await subscription.send_heartbeat()
            if rounds % round(TIDY_EVERY / HEARTBEAT) == 0:
                await subscription.tidy()
        except Transient as error:
            log.warning("can't keep deliveries: %s", error)
        del subscription


def message_of(entry_id: bytes, flat: list[bytes]) -> Message:
    """Whatever somebody has added is a message: whoever receives it says what is wrong with it, and
    keeps it."""
    fields = dict(zip(map(_text, flat[::2]), flat[1::2], strict=True))
    body, id = fields.pop("body", b""), fields.pop("id", entry_id)
    ordering_key = fields.pop("ordering_key", b"")
    try:
        attributes = _attributes(fields.get("attributes", b"{}"))
        fields.pop("attributes", None)
    except msgspec.DecodeError:  # then it is an attribute like any other
        attributes = {}
    return Message(
        _text(id),
        body,
        {**{name: _text(value) for name, value in fields.items()}, **attributes},
        _text(ordering_key),
    )


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


class RedisBus:
    """A `Bus` on a server, shared by any number of processes."""

    max_body: int | None = None

    def __init__(self, url: str) -> None:
        self.address = addresses.parse(url)
        self.scripts = bus_scripts()
        self.closed = True
        self.channel = f"{self.address.prefix}holdfast:bus"
        self._links = Links(self.address, astuple(self.scripts))
        self._listener = Listener(self.address, "bus", self._notified)
        self._notifiers: dict[str, Notifier] = {}
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()

    async def open(self) -> None:
        if not self.closed:
            return
        await examine(self.address)
        self.closed = False
        self._listener.listen()

    async def close(self) -> None:
        """End all subscriptions; what they had not ended waits for the next members of their
        groups."""
        for subscription in list(self._subscriptions):
            await subscription.aclose()
        self.closed = True
        await self._listener.stop()
        self._links.close()

    async def publish(self, topic: str, message: Message) -> None:
        """If anybody has ever subscribed to the topic; and wake those who have."""
        attributes = _encode(dict(message.attributes))
        fields = ["id", message.id, "body", message.body, "attributes", attributes]
        if message.ordering_key:
            fields += ["ordering_key", message.ordering_key]
        add = ("XADD", self._stream(topic), "NOMKSTREAM", "*", *fields)
        with self._talking() as link:
            await link.ask_all(await link.command_wire(), [add, ("PUBLISH", self.channel, topic)])

    def subscribe(
        self, topic: str, group: str, *, where: Filter = EVERYTHING, most: int = MOST
    ) -> Subscription:
        subscription = Subscription(self, topic, group, where, most)
        self._subscriptions.add(subscription)
        return subscription

    # --- for subscriptions ---

    async def call(self, script: Script, topic: str, *arguments: Argument) -> Any:
        with self._talking() as link:
            wire = await link.command_wire()
            return await link.run(wire, script, self._stream(topic), *arguments)

    @contextmanager
    def _talking(self) -> Iterator[Link]:
        """What goes wrong meanwhile may pass: it is Transient."""
        if self.closed:
            raise Transient(f"the bus {self.address} is closed")
        try:
            yield self._links.here()
        except (OSError, ReplyError) as error:
            raise Transient(str(server.explain(error, self.address))) from error

    def notifier(self, topic: str) -> Notifier:
        return self._notifiers.setdefault(topic, Notifier())

    def _stream(self, topic: str) -> str:
        return f"{self.address.prefix}holdfast:topic:{topic}"

    def _notified(self, topic: bytes) -> None:
        """Something is to be received, or (without a topic) may have been missed."""
        for name, notifier in list(self._notifiers.items()):
            if not topic or name == topic.decode():
                notifier.notify()
