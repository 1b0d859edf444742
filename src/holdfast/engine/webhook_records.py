"""What is stored about webhooks: endpoints, deliveries with their tries, and which of them wait for
another try. All of it is records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Conflict, Damaged, NotFound
from holdfast.model.damage import unless_damaged
from holdfast.model.keys import stored_key
from holdfast.model.replies import Stored
from holdfast.model.webhook import Delivery, Endpoint
from holdfast.ports.records import Record, Records

ENDPOINTS = "webhooks/endpoints/"
DELIVERIES = "webhooks/deliveries/"
RETRIES = "webhooks/retries/"
KEPT = 7 * 86400.0
"""How long a delivery is kept after its last try, in seconds. All tries take three days."""
MAX_EVENT = 300
"""Bytes of an event's id inside a key."""

T = TypeVar("T")

_endpoint = msgspec.json.Decoder(Endpoint).decode
_delivery = msgspec.json.Decoder(Delivery).decode
_due = msgspec.json.Decoder(float).decode


class WebhookRecords:
    def __init__(self, records: Records) -> None:
        self._records = records

    async def now(self) -> float:
        """The store's time."""
        return (await self._records.get(ENDPOINTS)).now

    # --- endpoints --------------------------------------------------------------------------------

    async def endpoints(self) -> list[Endpoint]:
        return await self._sound(_endpoint, ENDPOINTS)

    async def endpoint(self, id: str) -> Endpoint:
        page = await self._records.get(ENDPOINTS + id)
        if not page.records:
            raise NotFound(f"there is no webhook {id!r}; `holdfast webhooks list` shows them")
        return _endpoint_in(page.records[0])

    async def add(self, endpoint: Endpoint) -> None:
        reply = await self._records.put(ENDPOINTS + endpoint.id, _text(endpoint))
        if not isinstance(reply, Stored):
            raise Conflict(f"there is a webhook {endpoint.id!r} already")

    async def change(self, id: str, **changes: Any) -> Endpoint:
        """The endpoint with other values; made again if somebody else changes it meanwhile."""
        while True:
            page = await self._records.get(ENDPOINTS + id)
            if not page.records:
                raise NotFound(f"there is no webhook {id!r}; `holdfast webhooks list` shows them")
            [record] = page.records
            endpoint = msgspec.structs.replace(_endpoint_in(record), **changes)
            reply = await self._records.put(record.key, _text(endpoint), expected=record.version)
            if isinstance(reply, Stored):
                return endpoint

    async def remove(self, id: str) -> None:
        """Also one that can't be read."""
        with suppress(Damaged):
            await self.endpoint(id)
        for prefix in (f"{RETRIES}{id}/", f"{DELIVERIES}{id}/", ENDPOINTS + id):
            async for record in self._records_below(prefix):
                await self._records.delete(record.key, expected=record.version)

    # --- deliveries -------------------------------------------------------------------------------

    async def save(self, delivery: Delivery) -> None:
        """Keep a delivery, and whether it waits for another try."""
        name = _name(delivery.endpoint, delivery.event)
        await self._put(DELIVERIES + name, _text(delivery))
        if delivery.due is not None:
            await self._put(RETRIES + name, _text(delivery.due))
        else:
            await self._delete(RETRIES + name)

    async def delivery(self, endpoint: str, event: str) -> Delivery | None:
        return await self._delivery(_name(endpoint, event))

    async def _delivery(self, name: str) -> Delivery | None:
        page = await self._records.get(DELIVERIES + name)
        return unless_damaged(_delivery, page.records[0].value) if page.records else None

    async def deliveries(self, endpoint: str) -> list[Delivery]:
        return await self._sound(_delivery, f"{DELIVERIES}{endpoint}/")

    async def due(self) -> list[Delivery]:
        """Deliveries whose time for another try has come."""
        now = await self.now()
        names = [
            record.key.removeprefix(RETRIES)
            async for record in self._records_below(RETRIES)
            if (unless_damaged(_due, record.value) or 0.0) <= now
        ]
        waiting = [await self._delivery(name) for name in names]
        return [delivery for delivery in waiting if delivery is not None]

    # --- all of it --------------------------------------------------------------------------------

    async def _records_below(self, prefix: str) -> AsyncIterator[Record]:
        page = await self._records.list(prefix)
        while page.records:
            for record in page.records:
                yield record
            page = await self._records.list(prefix, after=page.records[-1].key)

    async def _sound(self, decode: Callable[[str], T], prefix: str) -> list[T]:
        """Those that can be read: a damaged one hides no other."""
        records = self._records_below(prefix)
        values = [unless_damaged(decode, record.value) async for record in records]
        return [value for value in values if value is not None]

    async def _put(self, key: str, value: str) -> None:
        """Write over whatever is there."""
        while True:
            page = await self._records.get(key)
            expected = page.records[0].version if page.records else None
            reply = await self._records.put(key, value, expected=expected, ttl=KEPT)
            if isinstance(reply, Stored):
                return

    async def _delete(self, key: str) -> None:
        page = await self._records.get(key)
        for record in page.records:
            await self._records.delete(key, expected=record.version)


def _endpoint_in(record: Record) -> Endpoint:
    endpoint = unless_damaged(_endpoint, record.value)
    if endpoint is None:
        raise Damaged(
            f"webhook {record.key.removeprefix(ENDPOINTS)!r} can't be read: remove it and add it "
            "again"
        )
    return endpoint


def _name(endpoint: str, event: str) -> str:
    return f"{endpoint}/{stored_key(event, MAX_EVENT)}"


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
