"""A bus on Redis Streams: a topic is a stream, a group is a consumer group, what waits is a sorted
set beside it.

A message that was delivered stays pending in its group until it is ended. Members give signs of
life for what they hold; what a dead member held goes to the others. Topics that nobody has ever
subscribed to keep nothing. A message that all groups have ended is forgotten; a group that nobody
reads any more keeps its messages until it is deleted (`XGROUP DESTROY
<prefix>holdfast:topic:<topic> <group>`).

Other systems publish with `XADD <prefix>holdfast:topic:<topic> * body …`: a field `id` names the
message (otherwise its place in the stream does), a field `attributes` is a JSON object of strings,
and any other field is an attribute."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.adapters.notifier import Notifier
from holdfast.adapters.redis import address as addresses
from holdfast.adapters.redis import server
from holdfast.adapters.redis.link import Links, examine
from holdfast.adapters.redis.listener import Listener
from holdfast.adapters.redis.scripts import Script, bus_scripts
from holdfast.adapters.redis.wire import Argument, ReplyError
from holdfast.errors import ConfigurationError, Transient
from holdfast.model.ids import new_token
from holdfast.ports.bus import Message

log = logging.getLogger("holdfast.redis")

Filter = Mapping[str, str | None]

AHEAD = 16
"""Messages that a member takes at once."""
DEAD_AFTER = 30.0
"""Seconds without a sign of life after which what a member held goes to the others."""
SIGN_OF_LIFE = DEAD_AFTER / 3
MAX_DROPPED = 5
"""How many members may die with a message in their hands before it is put aside."""
POLL = 1.0
"""The safety net under the notifier, and how soon a message of another system is noticed, in
seconds."""
LEFT_AFTER = 3600.0
TIDY_EVERY = 30.0

_encode = msgspec.json.Encoder().encode
_attributes = msgspec.json.Decoder(dict[str, str]).decode


class RedisDelivery:
    """One arrival of a message."""

    __slots__ = ("_subscription", "attempt", "ended", "message", "place")

    def __init__(
        self, subscription: Subscription, place: str, attempt: int, message: Message
    ) -> None:
        self.message = message
        self.attempt = attempt
        self.place = place
        self.ended = False
        self._subscription = subscription

    async def ack(self) -> None:
        await self._end("ack", 0)

    async def nack(self, delay: float = 0.0) -> None:
        await self._end("nack", delay)

    async def _end(self, what: str, delay: float) -> None:
        if not self.ended:
            self.ended = True
            await self._subscription.finish([(self, what, delay)])


class Subscription:
    """One member of a group. `aclose` gives back what it took and did not end."""

    def __init__(self, bus: RedisBus, topic: str, group: str, where: Filter) -> None:
        self._bus = bus
        self._topic = topic
        self._group = group
        self._where = dict(where)
        self._member = new_token()
        self._asked = asyncio.get_running_loop().time()
        self._ready: deque[RedisDelivery] = deque()
        self._held: dict[str, RedisDelivery] = {}
        self._waiting = 0
        self._heard = 0
        self._due: float | None = None
        self._closed = False
        self._filling: asyncio.Task[None] | None = None
        self._beginning = asyncio.create_task(self._begin())
        self._living: asyncio.Task[None] | None = None

    async def begun(self) -> None:
        """Return when the group exists, however long the server is away."""
        await asyncio.shield(self._beginning)

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
        if self._living is not None:
            self._living.cancel()
        await asyncio.wait(
            [self._filling or self._beginning]
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
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(self._fill())
        self._waiting += 1
        try:
            await asyncio.shield(self._filling)
        finally:
            self._waiting -= 1

    async def _fill(self) -> None:
        await self.begun()
        if self._living is None:
            self._living = asyncio.create_task(_give_signs_of_life(weakref.ref(self)))
        while self._waiting and not self._ready and not self._closed and not self._bus.closed:
            try:
                await self._take()
            except Transient as error:
                log.warning("topic %s: can't receive: %s", self._topic, error)
                await asyncio.sleep(POLL)
                continue
            if not self._ready and not self._closed:
                patience = POLL if self._due is None else min(POLL, self._due)
                self._heard = await self._bus.notifier(self._topic).wait(self._heard, patience)

    async def _take(self) -> None:
        limits = (AHEAD, round(DEAD_AFTER * 1000), MAX_DROPPED)
        try:
            found, due = await self._bus.call(
                self._bus.scripts.take, self._topic, self._group, self._member, *limits
            )
        except Transient as error:
            if "NOGROUP" not in str(error):
                raise
            await self._begin()  # the server has lost its data
            return
        self._due = due / 1000 if due >= 0 else None
        unwanted = [
            delivery for delivery in map(self._delivery, found) if not self._offer(delivery)
        ]
        if unwanted:
            await self.finish([(delivery, "ack", 0.0) for delivery in unwanted])

    def _offer(self, delivery: RedisDelivery) -> bool:
        """Keep a delivery if the filter lets it through."""
        attributes = delivery.message.attributes
        self._held[delivery.place] = delivery
        if not all(attributes.get(name) == value for name, value in self._where.items()):
            delivery.ended = True
            return False
        self._ready.append(delivery)
        return True

    def _delivery(self, row: Any) -> RedisDelivery:
        place, attempt, flat = row
        return RedisDelivery(self, place.decode(), attempt, message_of(place, flat))

    # --- ending ---

    async def finish(self, deliveries: Iterable[tuple[RedisDelivery, str, float]]) -> None:
        """Tell the group. When it can't be told, they come again: that is all that can happen."""
        arguments: list[Argument] = []
        for delivery, what, seconds in deliveries:
            if self._held.pop(delivery.place, None) is not None:
                arguments += [delivery.place, what, round(seconds * 1000)]
        if not arguments:
            return
        try:
            await self._tell(arguments)
        except Transient as error:
            log.warning(
                "topic %s: can't end deliveries, they will come again: %s", self._topic, error
            )

    async def give_sign_of_life(self) -> None:
        """Keep what is held, and forget what somebody else has by now."""
        held = [place for place, delivery in self._held.items() if not delivery.ended]
        lost = (
            await self._tell([part for place in held for part in (place, "keep", 0)])
            if held
            else []
        )
        for place in lost:
            if (delivery := self._held.pop(place.decode(), None)) is not None:
                delivery.ended = True

    async def tidy(self) -> None:
        await self._bus.call(self._bus.scripts.tidy, self._topic, round(LEFT_AFTER * 1000))

    async def _tell(self, arguments: list[Argument]) -> list[bytes]:
        who = (self._group, self._member, self._bus.channel, self._topic)
        return await self._bus.call(self._bus.scripts.finish, self._topic, *who, *arguments)

    # --- beginning ---

    async def _begin(self) -> None:
        where = _encode(dict(sorted(self._where.items()))).decode()
        while not self._closed:
            ago = asyncio.get_running_loop().time() - self._asked
            try:
                stored = await self._bus.call(
                    self._bus.scripts.begin, self._topic, self._group, where, ceil(ago * 1000)
                )
            except Transient as error:
                log.warning("topic %s: can't subscribe: %s", self._topic, error)
                await asyncio.sleep(POLL)
                continue
            if stored.decode() != where:
                raise ConfigurationError(
                    f"group {self._group!r} of topic {self._topic!r} filters by {stored.decode()}, "
                    f"not by {where}: "
                    "members of a group share one filter, so use another group"
                )
            return


async def _give_signs_of_life(forgotten: weakref.ref[Subscription]) -> None:
    """While somebody has the subscription; what one held that was forgotten goes to the others."""
    rounds = 0
    while True:
        await asyncio.sleep(SIGN_OF_LIFE)
        subscription = forgotten()
        if subscription is None:
            return
        rounds += 1
        try:
            await subscription.give_sign_of_life()
            if rounds % round(TIDY_EVERY / SIGN_OF_LIFE) == 0:
                await subscription.tidy()
        except Transient as error:
            log.warning("can't keep deliveries: %s", error)
        del subscription


def message_of(place: bytes, flat: list[bytes]) -> Message:
    """Whatever somebody has added is a message: whoever receives it says what is wrong with it, and
    keeps it."""
    fields = dict(zip(map(_text, flat[::2]), flat[1::2], strict=True))
    body, id = fields.pop("body", b""), fields.pop("id", place)
    try:
        attributes = _attributes(fields.get("attributes", b"{}"))
        fields.pop("attributes", None)
    except msgspec.DecodeError:  # then it is an attribute like any other
        attributes = {}
    return Message(
        _text(id), body, {**{name: _text(value) for name, value in fields.items()}, **attributes}
    )


def _text(given: bytes) -> str:
    return given.decode(errors="backslashreplace")


class RedisBus:
    """A `Bus` on a server, shared by any number of processes."""

    def __init__(self, url: str) -> None:
        self.address = addresses.parse(url)
        self.scripts = bus_scripts()
        self.closed = True
        self.channel = f"{self.address.prefix}holdfast:bus"
        self._links = Links(self.address, astuple(self.scripts))
        self._listener = Listener(self.address, "bus", self._rung)
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
        attributes = _encode(dict(message.attributes))
        await self.call(
            self.scripts.publish, topic, self.channel, topic, message.id, message.body, attributes
        )

    def subscribe(self, topic: str, group: str, *, where: Filter | None = None) -> Subscription:
        subscription = Subscription(self, topic, group, where or {})
        self._subscriptions.add(subscription)
        return subscription

    # --- for subscriptions ---

    async def call(self, script: Script, topic: str, *arguments: Argument) -> Any:
        if self.closed:
            raise Transient(f"the bus {self.address} is closed")
        link = self._links.here()
        try:
            return await link.run(
                await link.command_wire(), script, self._stream(topic), *arguments
            )
        except (OSError, ReplyError) as error:
            raise Transient(str(server.explain(error, self.address))) from error

    def notifier(self, topic: str) -> Notifier:
        return self._notifiers.setdefault(topic, Notifier())

    def _stream(self, topic: str) -> str:
        return f"{self.address.prefix}holdfast:topic:{topic}"

    def _rung(self, topic: bytes) -> None:
        """Something is to be received, or (without a topic) may have been missed."""
        for name, notifier in list(self._notifiers.items()):
            if not topic or name == topic.decode():
                notifier.notify()
