"""The receiver turns messages from other systems into runs.

A message is acknowledged as soon as its run is durable; from then on the lease and the sweeper keep
the run alive. What can't be decoded or does not fit becomes one dead letter with its original
bytes, and is acknowledged too. While the store is out of reach nothing is accepted: the message
comes back later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from holdfast.engine.failures import describe
from holdfast.engine.intake import MAX_KEY, Intake
from holdfast.engine.runtime import Runtime
from holdfast.errors import Transient
from holdfast.model.checkpoint import digest
from holdfast.model.commands import Bury
from holdfast.model.pipeline import Pipeline
from holdfast.ports.bus import Bus, Deliveries, Delivery, Message

log = logging.getLogger("holdfast.receiver")

NACK_DELAY = 5.0


class Receiver:
    """Feeds one subscription into one pipeline. The pipeline's own key, or else the message id, is
    the idempotency key, so a repeated delivery finds the run that it already became."""

    def __init__(
        self,
        runtime: Runtime,
        bus: Bus,
        topic: str,
        pipeline: Pipeline[Any],
        *,
        tenant: str = "default",
        decode: Callable[[Message], Any] | None = None,
    ) -> None:
        self._intake = Intake(runtime)
        self._runtime = runtime
        self._bus = bus
        self._topic = topic
        self._pipeline = pipeline
        self._tenant = tenant
        self._decode = decode or (lambda message: pipeline.input.decode(message.body.decode()))

    async def subscribe(self) -> Deliveries:
        """When this returns, no message is missed any more."""
        deliveries = self._bus.subscribe(self._topic, f"holdfast-{self._pipeline.name}")
        await deliveries.begun()
        return deliveries

    async def run(self, deliveries: Deliveries) -> None:
        # Closed, what was delivered and not acknowledged goes back at once.
        async with aclosing(deliveries):
            async for delivery in deliveries:
                await self.receive(delivery)

    async def receive(self, delivery: Delivery) -> None:
        """Accept, or bury, then acknowledge; in that order."""
        message = delivery.message
        try:
            await self._accept(message)
        except Transient as error:
            delay = max(NACK_DELAY, error.retry_after or 0.0)
            log.warning(
                "message %s from %s: nacked for %g s: %s",
                message.id,
                self._topic,
                delay,
                describe(error),
            )
            await delivery.nack(delay)
            return
        await delivery.ack()

    async def _accept(self, message: Message) -> None:
        try:
            value = self._decode(message)
            run = await self._intake.submit(
                self._pipeline, value, tenant=self._tenant, key=self._key(message, value)
            )
        except Transient:
            raise
        # Whatever a decoder raises: the message is kept, and the next one is received.
        except Exception as error:
            await self._bury(message, error)
        else:
            log.info(
                "message %s from %s: received as run %s (%s)",
                message.id,
                self._topic,
                run.id,
                "new" if run.created else "known already",
            )

    def _key(self, message: Message, value: Any) -> str:
        if self._pipeline.key is not None and (own := self._pipeline.key(value)) is not None:
            return own
        key = f"{self._topic}:{message.id}"
        return key if len(key) <= MAX_KEY else f"{self._topic[:100]}:{digest(message.id)}"

    async def _bury(self, message: Message, error: Exception) -> None:
        reason = f"{type(error).__name__}: {describe(error)}"
        log.warning("message %s from %s: buried: %s", message.id, self._topic, reason)
        await self._runtime.committer.send(
            Bury(
                f"message:{self._topic}:{message.id}",
                self._topic,
                reason,
                message.body,
                dict(message.attributes),
                self._tenant,
            )
        )
