"""Delivering events to webhooks.

Each endpoint follows the outbox with a lock and a cursor of its own, as a projection does, so that
a dead one stops no other. An event is tried at once; if that fails it is kept as a record and the
endpoint goes on with the next one, so that one event that it can't take stops no other either. A
loop of its own tries those again, for three days."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

import msgspec

from holdfast.engine import cursors
from holdfast.engine.locks import Lock
from holdfast.engine.publishing import committed_event
from holdfast.engine.relay import Relay
from holdfast.engine.runtime import Runtime
from holdfast.engine.supervision import end
from holdfast.engine.webhook_records import WebhookRecords
from holdfast.errors import ConfigurationError, InvalidInput, Transient
from holdfast.model.clock import Clock
from holdfast.model.cloudevent import to_attributes
from holdfast.model.event import Event
from holdfast.model.webhook import (
    GONE,
    Attempt,
    Delivery,
    Endpoint,
    event_body,
    headers,
    is_delivered,
    retry_delay,
)
from holdfast.ports.web import Web

log = logging.getLogger("holdfast.webhooks")

POLL_INTERVAL = 2.0
"""Between two looks at the endpoints and at deliveries that wait, in seconds."""
TIMEOUT = 20.0
"""For one delivery, in seconds."""
AT_ONCE = 16
"""Deliveries that are tried again at the same time."""
RETRIES_LOCK = "webhook-retries"


class WebhookSender:
    """Tries deliveries, and keeps what came of it."""

    def __init__(
        self,
        records: WebhookRecords,
        web: Web,
        key: str,
        clock: Clock,
        counted: Callable[[str], None] | None = None,
    ) -> None:
        self._counted = counted
        self._records = records
        self._web = web
        self._key = key
        self._clock = clock

    async def attempt(self, endpoint: Endpoint, delivery: Delivery) -> Delivery:
        """One try. The delivery as it is then: delivered, waiting for the next try, or failed."""
        attempt, retry_after = await self._post(endpoint, delivery)
        attempts = (*delivery.attempts, attempt)
        delay = retry_delay(len(attempts), retry_after, random.random())
        if is_delivered(attempt):
            state, due = "delivered", None
        elif delay is None or attempt.status == GONE:
            state, due = "failed", None
        else:
            state, due = "waiting", attempt.at + delay
        done = msgspec.structs.replace(delivery, attempts=attempts, state=state, due=due)
        await self._records.save(done)
        if self._counted is not None:
            self._counted("success" if state == "delivered" else "failure")
        if attempt.status == GONE:
            await self._disable(endpoint)
        _log(endpoint, done)
        return done

    async def _post(self, endpoint: Endpoint, delivery: Delivery) -> tuple[Attempt, float | None]:
        start, now = self._clock.monotonic(), await self._records.now()
        status, error, retry_after = None, "", None
        try:
            response = await self._web.post(
                endpoint.url,
                headers(endpoint, self._key, delivery, now),
                delivery.body.encode(),
                TIMEOUT,
            )
            status, retry_after = response.status, _seconds(response.headers.get("retry-after"))
        except (Transient, InvalidInput) as problem:
            error = str(problem)
        elapsed = round(1000 * (self._clock.monotonic() - start))
        return Attempt(now, status, error, elapsed), retry_after

    async def _disable(self, endpoint: Endpoint) -> None:
        reason = "it answered 410: it wants nothing more"
        await self._records.change(endpoint.id, disabled=reason)
        log.warning("webhook %s is disabled: %s", endpoint.id, reason)


class WebhookTarget:
    """An endpoint, as a relay sees it."""

    kind = "webhook"
    history = False

    def __init__(self, endpoint: Endpoint, sender: WebhookSender) -> None:
        self.name = cursor_name(endpoint.id)
        self._endpoint = endpoint
        self._sender = sender

    def select(self, events: Sequence[Event]) -> list[Event]:
        return [event for event in events if self._endpoint.concerns(event)]

    async def deliver(self, event: Event, generation: int) -> None:
        await self._sender.attempt(self._endpoint, delivery_of(self._endpoint, event))


class Webhooks:
    """Follows the endpoints of a store: a relay for each, and a loop for what has to be tried
    again."""

    def __init__(self, runtime: Runtime, owner: str, key: str, make_web: Callable[[], Web]) -> None:
        self._runtime = runtime
        self._owner = owner
        self._key = key
        self._make_web = make_web
        self._records = WebhookRecords(runtime.records)
        self._counted = runtime.meter.webhook_delivered if runtime.meter else None
        self._relays: dict[Endpoint, asyncio.Task[None]] = {}

    async def run(self) -> None:
        web: Web | None = None
        lock = Lock(self._runtime, RETRIES_LOCK, owner=self._owner, internal=True)
        try:
            while True:
                endpoints = await self._active()
                if endpoints and web is None:
                    web = self._make_web()
                if web is not None:
                    sender = WebhookSender(
                        self._records, web, self._key, self._runtime.clock, self._counted
                    )
                    await self._serve(endpoints, sender, lock)
                await asyncio.sleep(POLL_INTERVAL)
        finally:
            await end(self._relays.values())
            await lock.release()
            if web is not None:
                await web.close()

    async def _active(self) -> list[Endpoint]:
        """Endpoints that want something; while the store is away those that did."""
        try:
            return [e for e in await self._records.endpoints() if not e.disabled]
        except Transient:
            return list(self._relays)

    async def _serve(
        self, endpoints: Sequence[Endpoint], sender: WebhookSender, lock: Lock
    ) -> None:
        try:
            await self._follow(endpoints, sender)
            if endpoints and (lock.held or await lock.try_acquire()):
                await self._try_again(endpoints, sender)
        except Transient as error:
            log.warning("webhooks: can't go on, next try in %g s: %s", POLL_INTERVAL, error)

    async def _follow(self, endpoints: Sequence[Endpoint], sender: WebhookSender) -> None:
        """A relay for each endpoint as it is now; none for those that are gone or have changed."""
        ids = {endpoint.id for endpoint in endpoints}
        for known in set(self._relays) - set(endpoints):
            await end([self._relays.pop(known)])
            if known.id not in ids:  # or retention would wait for it
                await cursors.forget(self._runtime.records, cursor_name(known.id))
        for endpoint in endpoints:
            if endpoint not in self._relays:
                relay = Relay(self._runtime, WebhookTarget(endpoint, sender), self._owner)
                name = f"the relay of {cursor_name(endpoint.id)}"
                self._relays[endpoint] = self._runtime.supervisor.start(name, relay.run)

    async def _try_again(self, endpoints: Sequence[Endpoint], sender: WebhookSender) -> None:
        by_id = {endpoint.id: endpoint for endpoint in endpoints}
        due = [delivery for delivery in await self._records.due() if delivery.endpoint in by_id]
        slots = asyncio.Semaphore(AT_ONCE)

        async def attempt(delivery: Delivery) -> None:
            async with slots:
                await sender.attempt(by_id[delivery.endpoint], delivery)

        await asyncio.gather(*map(attempt, due))


KEY_MISSING = (
    "their signatures need a key. Set HOLDFAST_WEBHOOKS_KEY to a secret of at least 24 characters, "
    "the same in every process, for example from `openssl rand -base64 32`"
)


def require_key(key: str | None) -> str:
    if not key:
        raise ConfigurationError(f"webhooks can't be used: {KEY_MISSING}")
    return key


def cursor_name(endpoint: str) -> str:
    """The name of its cursor and lock among those of the projections."""
    return f"webhook.{endpoint}"


def delivery_of(endpoint: Endpoint, event: Event) -> Delivery:
    """The same bytes in every copy."""
    committed = committed_event(event)
    body = event_body(to_attributes(committed, "local"), committed.data)
    return Delivery(endpoint.id, event.id, event.type, body)


def _seconds(retry_after: str | None) -> float | None:
    """Of the header `Retry-After`, if it is a number of seconds; at most a day."""
    if retry_after is None or not retry_after.isdigit():
        return None
    return min(float(retry_after), 86400.0)


def _log(endpoint: Endpoint, delivery: Delivery) -> None:
    last = delivery.attempts[-1]
    if delivery.state == "delivered":
        log.debug("webhook %s: event %s delivered", endpoint.id, delivery.event)
        return
    log.warning(
        "webhook %s: event %s not delivered, try %d, %s: %s",
        endpoint.id,
        delivery.event,
        len(delivery.attempts),
        "given up" if delivery.due is None else f"next in {delivery.due - last.at:.0f} s",
        last.error or f"it answered {last.status}",
    )
