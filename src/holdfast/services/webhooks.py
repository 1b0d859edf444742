"""Webhooks as people see and change them: endpoints, their secrets, what was delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from msgspec import Struct, structs

from holdfast.engine import cursors
from holdfast.engine.outbox import end_of_outbox
from holdfast.engine.webhook_records import WebhookRecords
from holdfast.engine.webhooks import (
    WebhookSender,
    WebhookTarget,
    cursor_name,
    delivery_of,
    require_key,
)
from holdfast.errors import ConfigurationError, Conflict, InvalidInput, NotFound
from holdfast.model.clock import Clock
from holdfast.model.event import Event, EventType
from holdfast.model.ids import new_token
from holdfast.model.web_address import parse_web_address, refuse_private
from holdfast.model.webhook import Delivery, Endpoint, endpoint_secret
from holdfast.ports.records import Records
from holdfast.ports.store import Store
from holdfast.ports.web import Web
from holdfast.services.audit import write_entry
from holdfast.services.views import at

OVERLAP = 86400.0
"""How long the previous secret still signs after a rotation, in seconds."""
MOST_ENDPOINTS = 50
"""Endpoints of one tenant: each of them costs a cursor, and a request for every event."""
TEST = "webhook.test"
"""The type of the event that is sent to try an endpoint."""


def _no_web() -> Web:
    raise ConfigurationError("nothing can be sent from here: this process has no web client")


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """What secrets are derived from, which private hosts may be told, and what requests are sent
    with."""

    key: str | None = None
    allow: Sequence[str] = ()
    make_web: Callable[[], Web] = _no_web


class WebhookView(Struct):
    """`secret` is shown when it is made, and never again."""

    id: str
    url: str
    tenant: str | None
    events: list[str]
    created: datetime | None
    disabled: str
    secret: str | None = None


class AttemptView(Struct):
    at: datetime | None
    status: int | None
    error: str
    duration_ms: int


class DeliveryView(Struct):
    webhook: str
    event: str
    type: str
    state: str
    due: datetime | None
    attempts: list[AttemptView]


class WebhookService:
    """`tenant` restricts everything to one tenant's endpoints; None: an operator, who sees all."""

    def __init__(
        self,
        store: Store,
        records: Records,
        key: str | None,
        allow: Sequence[str] = (),
        tenant: str | None = None,
    ) -> None:
        self._outbox = store
        self._store = WebhookRecords(records)
        self._records = records
        self._key = key
        self._allow = tuple(allow)
        self._tenant = tenant

    async def add(
        self, url: str, *, events: Sequence[str] = (), tenant: str | None, actor: str
    ) -> WebhookView:
        """A new endpoint, told of what happens from now on. Its secret is in the answer only."""
        key = require_key(self._key)
        address = parse_web_address(url, self._allow)
        if address.literal is not None and address.host not in self._allow:
            refuse_private(address.literal, address.host)
        _check_events(events)
        await self._check_count(tenant)
        now = await self._store.now()
        endpoint = Endpoint(f"wh-{new_token()[:12]}", str(address), now, tenant, tuple(events))
        await self._store.add(endpoint)
        name, position = cursor_name(endpoint.id), await end_of_outbox(self._outbox)
        await cursors.register(self._records, name, WebhookTarget.kind, position)
        await self._audit(actor, "webhook.add", endpoint.id)
        return structs.replace(_view(endpoint), secret=endpoint_secret(key, endpoint.id, 1))

    async def list(self) -> list[WebhookView]:
        return [_view(e) for e in await self._store.endpoints() if self._may_see(e)]

    async def remove(self, id: str, *, actor: str) -> None:
        await self._endpoint(id)
        await self._store.remove(id)
        await cursors.forget(self._records, cursor_name(id))
        await self._audit(actor, "webhook.remove", id)

    async def rotate(self, id: str, *, actor: str) -> WebhookView:
        """A new secret. The previous one signs beside it for a day."""
        key, endpoint = require_key(self._key), await self._endpoint(id)
        now = await self._store.now()
        changed = await self._store.change(
            id, generation=endpoint.generation + 1, overlap_until=now + OVERLAP
        )
        await self._audit(actor, "webhook.rotate", id)
        return structs.replace(_view(changed), secret=changed.secrets(key, now)[0])

    async def enable(self, id: str, *, actor: str) -> WebhookView:
        """Deliver to an endpoint again that had refused everything."""
        await self._endpoint(id)
        changed = await self._store.change(id, disabled="")
        await self._audit(actor, "webhook.enable", id)
        return _view(changed)

    async def deliveries(self, id: str, *, state: str | None = None) -> list[DeliveryView]:
        """What was sent to an endpoint in the last seven days."""
        await self._endpoint(id)
        deliveries = await self._store.deliveries(id)
        return [_delivery_view(d) for d in deliveries if state is None or d.state == state]

    async def replay(self, id: str, event: str, *, actor: str) -> DeliveryView:
        """Deliver an event once more, at the next opportunity: the same id and the same bytes."""
        await self._endpoint(id)
        delivery = await self._store.delivery(id, event)
        if delivery is None:
            raise NotFound(
                f"webhook {id} knows no delivery of event {event!r}; `holdfast webhooks deliveries "
                f"{id}` shows them"
            )
        again = structs.replace(delivery, state="waiting", due=await self._store.now())
        await self._store.save(again)
        await self._audit(actor, "webhook.replay", f"{id} {event}")
        return _delivery_view(again)

    async def test(self, id: str, web: Web, clock: Clock, *, actor: str) -> DeliveryView:
        """Send an event that means nothing, and tell what came back."""
        endpoint = await self._endpoint(id)
        sender = WebhookSender(self._store, web, require_key(self._key), clock)
        await self._audit(actor, "webhook.test", id)
        now = await self._store.now()
        event = Event(f"test-{new_token()[:8]}", 1, TEST, now, tenant=endpoint.tenant or "")
        done = await sender.attempt(endpoint, delivery_of(endpoint, event))
        if done.due is not None:  # once is enough
            done = structs.replace(done, due=None, state="failed")
            await self._store.save(done)
        return _delivery_view(done)

    async def _check_count(self, tenant: str | None) -> None:
        if tenant is None:
            return
        count = sum(e.tenant == tenant for e in await self._store.endpoints())
        if count >= MOST_ENDPOINTS:
            raise Conflict(
                f"tenant {tenant!r} has {count} webhooks, and may have no more: "
                "`holdfast webhooks remove` makes room"
            )

    async def _endpoint(self, id: str) -> Endpoint:
        endpoint = await self._store.endpoint(id)
        if not self._may_see(endpoint):
            raise NotFound(f"there is no webhook {id!r}; `holdfast webhooks list` shows them")
        return endpoint

    def _may_see(self, endpoint: Endpoint) -> bool:
        return self._tenant is None or endpoint.tenant == self._tenant

    async def _audit(self, actor: str, action: str, target: str) -> None:
        await write_entry(self._records, actor, action, target)


def _check_events(events: Sequence[str]) -> None:
    for unknown in set(events) - set(EventType):
        close = get_close_matches(unknown, map(str, EventType), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(EventType)}"
        raise InvalidInput(f"there is no event {unknown!r}; {hint}")


def _view(endpoint: Endpoint) -> WebhookView:
    return WebhookView(
        endpoint.id,
        endpoint.url,
        endpoint.tenant,
        list(endpoint.events),
        at(endpoint.created),
        endpoint.disabled,
    )


def _delivery_view(delivery: Delivery) -> DeliveryView:
    attempts = [AttemptView(at(a.at), a.status, a.error, a.duration_ms) for a in delivery.attempts]
    due = None if delivery.due is None else at(delivery.due)
    return DeliveryView(
        delivery.endpoint, delivery.event, delivery.type, delivery.state, due, attempts
    )
