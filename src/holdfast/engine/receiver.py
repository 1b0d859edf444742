"""The receiver turns messages from other systems into runs.

A message is acknowledged as soon as its run is durable; from then on the lease and the sweeper keep
the run alive. A new message for a run that has failed resumes it. What can't be decoded or does not
fit becomes one dead letter with its original bytes, secrets masked, and is acknowledged too. While
the store is out of reach nothing is accepted: the message comes back later, and no other one is
tried until the store answers. Brokers count what is refused, and put aside what was refused too
often; so a long outage costs a few messages one delivery each, not every message all of its
deliveries."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import structs

from holdfast.engine.failures import describe
from holdfast.engine.incoming import MESSAGE_ID, Incoming
from holdfast.engine.intake import Intake
from holdfast.engine.job_secrets import NEEDS_KEY
from holdfast.engine.runtime import Runtime
from holdfast.engine.submission import MAX_KEY, SubmitOptions
from holdfast.engine.tracing import message_span
from holdfast.errors import InvalidInput, StoreUnavailable, Transient
from holdfast.model.checkpoint import digest
from holdfast.model.commands import Bury, Resume
from holdfast.model.event import EventType
from holdfast.model.keys import MAX_WHOLE, stored_key
from holdfast.model.limits import storable
from holdfast.model.pipeline import Pipeline
from holdfast.model.receive import Receive, labels_of, value_at
from holdfast.model.replies import Refused
from holdfast.model.run import Run, RunState
from holdfast.model.secret_fields import hidden
from holdfast.ports.bus import Bus, Deliveries, Delivery, Message

log = logging.getLogger("holdfast.receiver")

NACK_DELAY = 5.0
PROBE_INTERVAL = 1.0
PROBE = "receiver"
"""A record that nobody writes: reading it tells whether the store answers."""


class Receiver:
    """Feeds one subscription into one pipeline. The pipeline's own key, or else the message id, is
    the idempotency key, so a repeated delivery finds the run that it already became."""

    def __init__(
        self,
        runtime: Runtime,
        bus: Bus | None,
        receive: Receive,
        pipeline: Pipeline[Any],
        *,
        tenant: str = "default",
        decode: Callable[[Message], Any] | None = None,
    ) -> None:
        self._intake = Intake(runtime)
        self._runtime = runtime
        self._bus = bus
        self._receive = receive
        self._topic = receive.topic
        self._pipeline = pipeline
        self._tenant = receive.tenant or tenant
        self._decode = decode or (lambda message: pipeline.input.decode(message.body.decode()))
        # In a fifo lane the order of messages is the order of runs.
        self._most = 1 if pipeline.lane.order == "fifo" else receive.max_messages
        self._room = Room(self._most, receive.max_bytes)
        self._store_is_away = False
        self.heard = -math.inf
        """When the last message arrived or, before the first one, when this has subscribed."""

    async def subscribe(self) -> Deliveries:
        """When this returns, no message is missed any more."""
        assert self._bus is not None, "messages that are pushed have no subscription here"
        receive = self._receive
        deliveries = self._bus.subscribe(
            self._topic, receive.group, where=receive.where, most=self._most
        )
        await deliveries.begun()
        self.heard = asyncio.get_running_loop().time()
        return deliveries

    async def run(self, deliveries: Deliveries | None = None) -> None:
        deliveries = deliveries or await self.subscribe()
        # Closed, what was delivered and not acknowledged goes back at once.
        async with aclosing(deliveries), asyncio.TaskGroup() as group:
            async for delivery in deliveries:
                self.heard = asyncio.get_running_loop().time()
                size = len(delivery.message.body)
                await self._room.enter(size)
                await self._until_the_store_answers()
                task = group.create_task(self.receive(delivery))
                task.add_done_callback(lambda _, size=size: self._room.leave(size))

    async def _until_the_store_answers(self) -> None:
        while self._store_is_away:
            try:
                await self._runtime.records.get(PROBE)
                self._store_is_away = False
            except StoreUnavailable:
                await asyncio.sleep(PROBE_INTERVAL)

    async def receive(self, delivery: Delivery) -> None:
        """Accept, or bury, then acknowledge; in that order."""
        meter, clock = self._runtime.meter, self._runtime.clock
        if meter is None:
            await self._receive_one(delivery)
            return
        meter.message_arrived(self._topic)
        started, acked = clock.monotonic(), False
        try:
            acked = await self._receive_one(delivery)
        finally:
            meter.message_answered(self._topic, clock.monotonic() - started, acked=acked)

    async def _receive_one(self, delivery: Delivery) -> bool:
        """Whether it was acknowledged."""
        incoming = Incoming(delivery.message, self._receive.secrets)
        message, attempt = delivery.message, delivery.attempt
        with message_span(self._runtime, self._topic, message, attempt) as span:
            try:
                await self._accept(incoming, attempt)
            except Transient as error:
                self._store_is_away = isinstance(error, StoreUnavailable)
                span.fail(type(error).__name__, str(error))
                await nack(delivery, self._topic, error)
                return False
            await delivery.ack()
        return True

    async def _accept(self, incoming: Incoming, attempt: int) -> None:
        try:
            outcome = await self._submit(incoming, attempt)
        except Transient:
            raise
        # Whatever a decoder raises: the message is kept, and the next one is received.
        except Exception as error:
            reason = f"{type(error).__name__}: {describe(error)}"
            reason = hidden(reason, incoming.secrets.values())
            await bury(self._runtime, self._topic, incoming.message, reason, self._tenant)
        else:
            log.info("message %s from %s: %s", incoming.message.id, self._topic, outcome)

    async def _submit(self, incoming: Incoming, attempt: int) -> str:
        """What became of the message."""
        incoming = await self._fetched(incoming)
        attributes = incoming.attributes
        value = self._decode(Message(incoming.message.id, incoming.data, attributes))
        options = SubmitOptions(
            tenant=self._tenant_of(incoming),
            labels=labels_of(self._receive, incoming.value, attributes),
            attributes=incoming.kept_attributes(self._topic, attempt),
        )
        key = self._key(incoming, value)
        run = await self._intake.submit(
            self._pipeline, value, options, key=key, secrets=incoming.secrets
        )
        if run.created:
            return f"received as run {run.id} (new)"
        return await self._accept_repeated(await run.info(), incoming)

    async def _fetched(self, incoming: Incoming) -> Incoming:
        """With its body, if that came by reference. What is buried keeps the reference."""
        message, checks = incoming.message, self._runtime.claim_checks
        body = await checks.body_of(message.body, dict(message.attributes))
        if body is message.body:
            return incoming
        fetched = Incoming(structs.replace(message, body=body), self._receive.secrets)
        # Also of the message that may be buried: a reason must not quote them.
        incoming.secrets = fetched.secrets = incoming.secrets | fetched.secrets
        return fetched

    async def _accept_repeated(self, run: Run, incoming: Incoming) -> str:
        """A message for a run that is there: it goes on if it has failed, or waits for a key that
        this message has."""
        waits = run.state == RunState.PAUSED and (run.reason or "").startswith(NEEDS_KEY)
        can_resume = run.state == RunState.FAILED or (waits and bool(incoming.secrets))
        if not can_resume or await self._is_known(run, incoming.id, waits):
            return f"received as run {run.id} (known already, {run.state})"
        resume = Resume(
            run.id,
            f"message {incoming.message.id}",
            self._pipeline.max_attempts,
            incoming.id,
            run.epoch,
        )
        if isinstance(await self._runtime.committer.send(resume), Refused):
            return f"received as run {run.id} (known already)"
        return f"received as run {run.id} (resumed, it had {run.state})"

    async def _is_known(self, run: Run, message: str, waits: bool) -> bool:
        """Whether this message has created or resumed the run before. One that brings the key that
        a run waits for may come again: the process that knew the key is gone."""
        if waits:
            return False
        if run.attributes.get(MESSAGE_ID) == message:
            return True
        resumed = [
            event
            for event in await self._runtime.store.history(run.id)
            if event.type == EventType.RESUMED
        ]
        return any(msgspec.json.decode(event.data).get("message") == message for event in resumed)

    def _tenant_of(self, incoming: Incoming) -> str:
        path = self._receive.tenant_from
        if not path:
            return self._tenant
        tenant = value_at(path, incoming.value, incoming.attributes)
        if tenant is None:
            raise InvalidInput(f"the message has no tenant: there is nothing at {path}")
        return tenant

    def _key(self, incoming: Incoming, value: Any) -> str:
        if self._pipeline.key is not None and (own := self._pipeline.key(value)) is not None:
            return own
        key = f"{self._topic}:{incoming.id}"
        if len(key) <= MAX_KEY and key.isprintable():
            return key
        return f"{self._topic[:100]}:{digest(storable(incoming.id))}"


class Room:
    """How many messages, and how many of their bytes, are in the works at once."""

    def __init__(self, messages: int, max_bytes: int) -> None:
        self._most = messages, max_bytes
        self._messages = self._bytes = 0
        self._left = asyncio.Event()

    async def enter(self, size: int) -> None:
        """Wait until there is room; one message is always let in."""
        while self._messages and not self._fits(size):
            self._left.clear()
            await self._left.wait()
        self._messages += 1
        self._bytes += size

    def leave(self, size: int) -> None:
        self._messages -= 1
        self._bytes -= size
        self._left.set()

    def _fits(self, size: int) -> bool:
        messages, max_bytes = self._most
        return self._messages < messages and self._bytes + size <= max_bytes


async def nack(delivery: Delivery, topic: str, error: Transient) -> None:
    """Let a message come again: the store is away."""
    delay = max(NACK_DELAY, error.retry_after or 0.0)
    log.warning(
        "message %s from %s: nacked for %g s, delivery %d: %s",
        delivery.message.id,
        topic,
        delay,
        delivery.attempt,
        describe(error),
    )
    await delivery.nack(delay)


async def bury(runtime: Runtime, topic: str, message: Message, reason: str, tenant: str) -> None:
    """Keep a message that can't become a run. It may hold no secrets any more."""
    log.warning("message %s from %s: buried: %s", message.id, topic, reason)
    if runtime.meter is not None:
        runtime.meter.message_buried(topic)
    name = storable(f"message:{topic}:{message.id}")
    id = stored_key(name, MAX_WHOLE)
    attributes = {storable(key): storable(text) for key, text in message.attributes.items()}
    if id != name:
        attributes["message_id"] = storable(message.id)
    await runtime.committer.send(
        Bury(
            id,
            topic,
            storable(reason),
            message.body,
            attributes,
            tenant,
        )
    )
