"""One member of a subscription of Pub/Sub: pulls messages, hands them out, and acknowledges or
returns them.

There is no lease to renew: whoever receives a message acknowledges it as soon as its run is
durable, which takes milliseconds. What is held longer than the subscription's ack deadline comes
again, here or at another member, and so does what a dead member held. A pull that is cancelled when
a member closes may have received messages: they come again after the ack deadline, too."""

from __future__ import annotations

import asyncio
import logging
from math import ceil
from typing import TYPE_CHECKING, Any

from google.pubsub_v1.types import PullResponse

from holdfast.adapters.pubsub.endings import Endings
from holdfast.adapters.pubsub.messages import from_pubsub
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.filters import Filter
from holdfast.ports.bus import Message

if TYPE_CHECKING:
    from holdfast.adapters.pubsub.bus import PubSubBus

log = logging.getLogger("holdfast.pubsub")

PULL_TIMEOUT = 60.0
"""Seconds that a pull waits for messages."""
PULL_PAUSE = 0.1
"""Seconds between two pulls that bring nothing, at least."""
GIVE_BACK = 1.0
"""Seconds for which `aclose` waits until Pub/Sub knows what comes again."""
POLL = 1.0
"""Seconds before what failed is tried again."""
MAX_DELAY = 600
"""The longest delay of a nack, in seconds: as long as an ack deadline may be."""


class PubSubDelivery:
    """One arrival of a message."""

    __slots__ = ("_subscription", "ack_id", "attempt", "ended", "message", "pulled", "server_id")

    def __init__(
        self, subscription: Subscription, received: Any, message: Message, attempt: int
    ) -> None:
        self.message = message
        self.attempt = attempt
        self.ack_id: str = received.ack_id
        self.server_id: str = received.message.message_id
        self.ended = False
        self.pulled = asyncio.get_running_loop().time()
        self._subscription = subscription

    async def ack(self) -> None:
        await self._subscription.end(self, None)

    async def nack(self, delay: float = 0.0) -> None:
        """It comes again after at most 600 seconds, and later if the subscription's retry policy
        says so."""
        await self._subscription.end(self, min(ceil(max(delay, 0.0)), MAX_DELAY))


class Subscription:
    """Holds at most `most` deliveries at once. `aclose` gives back what it took and did not end."""

    def __init__(self, bus: PubSubBus, topic: str, group: str, where: Filter, most: int) -> None:
        self._bus = bus
        self._topic = topic
        self._group = group
        self._where = where
        self._most = most
        self._path = bus.address.subscription(group)
        self._attempts = bus.attempts(group)
        self._ack_deadline = 0.0
        self._ready: asyncio.Queue[PubSubDelivery | None] = asyncio.Queue()
        self._held: dict[str, PubSubDelivery] = {}
        self._room = asyncio.Event()
        self._closed = False
        self._endings = Endings(group, self._send)
        self._begin_task = asyncio.create_task(self._begin())
        self._pull_task: asyncio.Task[None] | None = None

    async def begun(self) -> None:
        """Return when the subscription exists, however long Pub/Sub is away."""
        await asyncio.shield(self._begin_task)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> PubSubDelivery:
        if not self._closed and self._pull_task is None:
            await self.begun()
            self._pull_task = asyncio.create_task(self._pull_all())
            self._pull_task.add_done_callback(lambda _: self._ready.put_nowait(None))
        delivery = None if self._closed else await self._ready.get()
        if delivery is None:
            self._ready.put_nowait(None)  # for the next waiter
            self._raise_failure()
            raise StopAsyncIteration
        delivery.attempt = self._attempts.count(delivery.server_id, delivery.attempt)
        return delivery

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        tasks = [task for task in (self._begin_task, self._pull_task) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._ready.put_nowait(None)
        await self._give_back()
        self._bus.forget(self)

    async def _give_back(self) -> None:
        """What can't be given back in time comes again after the ack deadline: a worker that stops
        has runs to hand over."""
        nacks = [asyncio.create_task(delivery.nack()) for delivery in self._held.values()]
        if nacks:
            await asyncio.wait(nacks, timeout=GIVE_BACK)

    def _raise_failure(self) -> None:
        """Raise the failure that ended the subscription, for whoever iterates."""
        task = self._pull_task
        if not self._closed and task is not None and task.done() and not task.cancelled():
            task.result()

    # --- pulling ---

    async def _pull_all(self) -> None:
        while not self._closed:
            room = await self._free_room()
            try:
                await self._pull(room)
            except NotFound:  # the emulator was restarted, or the subscription was deleted
                await self._begin()
            except HoldfastError as error:
                log.warning("subscription %s: can't receive: %s", self._group, error)
                await asyncio.sleep(POLL)

    async def _free_room(self) -> int:
        """Wait until there is room for more; how many more. What has been held for longer than the
        ack deadline takes no room: it comes again."""
        while True:
            late = asyncio.get_running_loop().time() - self._ack_deadline
            unexpired = sum(delivery.pulled > late for delivery in self._held.values())
            if unexpired < self._most:
                return self._most - unexpired
            self._room.clear()
            try:
                await asyncio.wait_for(self._room.wait(), self._ack_deadline)
            except TimeoutError:
                pass

    async def _pull(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        pulled = await self._bus.pull(self._path, count, PULL_TIMEOUT)
        self._offer(pulled)
        if not pulled and loop.time() - began < PULL_PAUSE:
            await asyncio.sleep(PULL_PAUSE)  # the pull did not wait: don't poll in a busy loop

    def _offer(self, pulled: list[Any]) -> None:
        for received in pulled:
            message = from_pubsub(received.message)
            delivery = PubSubDelivery(self, received, message, received.delivery_attempt)
            self._held[delivery.ack_id] = delivery
            # The emulator does not filter, nor does a subscription that others created without a
            # filter.
            if self._where.matches(message.attributes):
                self._ready.put_nowait(delivery)
            else:
                self._bus.start(delivery.ack())

    # --- ending ---

    async def end(self, delivery: PubSubDelivery, again_after: int | None) -> None:
        if delivery.ended:
            return
        delivery.ended = True
        self._held.pop(delivery.ack_id, None)
        self._room.set()
        if again_after is None:
            self._attempts.forget(delivery.server_id)
        await self._endings.end(delivery.ack_id, again_after)

    async def _send(self, ack_ids: list[str], again_after: int | None) -> None:
        await self._bus.end(self._path, ack_ids, again_after)

    # --- beginning ---

    async def _begin(self) -> None:
        self._ack_deadline = await self._bus.ensure_subscription(
            self._topic, self._group, self._where
        )


def received_messages(response: PullResponse) -> list[Any]:
    """Those of the protocol: the wrapper around them costs more than all the rest."""
    return list(PullResponse.pb(response).received_messages)
