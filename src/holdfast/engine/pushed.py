"""Messages that a broker pushes by HTTP enter by the same receiver as those that are pulled: they
are answered once they are durable as a run or a dead letter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.engine.incoming import Incoming
from holdfast.engine.receiver import NACK_DELAY, Receiver, bury
from holdfast.engine.runtime import Runtime
from holdfast.engine.unmatched import GROUP, REGISTER_EVERY, Unmatched, register
from holdfast.errors import NotFound, Transient
from holdfast.model.pipeline import Pipeline
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message

PUSH = "push"
"""Where a dead letter came from whose envelope could not be read."""


class PushedDelivery:
    """One arrival of a message by HTTP; it ends with the answer."""

    def __init__(self, message: Message, attempt: int) -> None:
        self.message = message
        self.attempt = attempt
        self.again_after: float | None = None
        """Seconds until the broker may try again; None: it need not."""

    async def ack(self) -> None:
        self.again_after = None

    async def nack(self, delay: float = 0.0) -> None:
        self.again_after = max(delay, NACK_DELAY)


class Pushed:
    """The subscriptions whose messages are pushed to this process."""

    def __init__(
        self,
        runtime: Runtime,
        receives: Iterable[Receive],
        pipelines: Mapping[str, Pipeline[Any]],
        *,
        tenant: str = "default",
    ) -> None:
        self._runtime = runtime
        self._tenant = tenant
        self._receives = list(receives)
        self._registered = -math.inf
        self._receivers: dict[str, tuple[Receive, Receiver]] = {}
        self._unmatched: dict[str, Unmatched] = {}
        for receive in self._receives:
            receive.check()
            if receive.pipeline not in pipelines:
                continue  # another process of the deployment is pushed to
            receiver = Receiver(runtime, None, receive, pipelines[receive.pipeline], tenant=tenant)
            self._receivers[receive.group] = (receive, receiver)
            if receive.filter and receive.unmatched == "bury":
                rest = Unmatched(runtime, None, receive.topic, receive.tenant or tenant)
                self._unmatched[f"{GROUP}{receive.topic}"] = rest

    @property
    def subscriptions(self) -> list[str]:
        return [*self._receivers, *self._unmatched]

    async def start(self) -> None:
        """Make the filters known to all processes, and again while messages come: they are kept for
        some time only."""
        now = self._runtime.clock.monotonic()
        if now >= self._registered + REGISTER_EVERY:
            for receive in self._receives:
                await register(self._runtime, receive)
            self._registered = now

    async def receive(self, subscription: str, message: Message, attempt: int) -> None:
        """Return when the message is durable. Raises NotFound for a subscription that is not
        received here, and Transient when the message has to come again."""
        await self.start()
        delivery = PushedDelivery(message, attempt)
        if subscription in self._unmatched:
            await self._unmatched[subscription].receive(delivery)
        elif subscription in self._receivers:
            receive, receiver = self._receivers[subscription]
            if receive.where.matches(message.attributes):
                await receiver.receive(delivery)
        else:
            known = ", ".join(self.subscriptions) or "none"
            raise NotFound(
                f"subscription {subscription[:100]!r} is not received here (received are: {known})"
            )
        if delivery.again_after is not None:
            raise Transient(
                f"message {message.id[:100]} was not accepted now",
                retry_after=delivery.again_after,
            )

    async def bury(self, message: Message, reason: str) -> None:
        """Keep a push that can't be read."""
        incoming = Incoming(message)
        await bury(self._runtime, PUSH, incoming.message, reason, self._tenant)
