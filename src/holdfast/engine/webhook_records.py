"""What is stored about webhooks: endpoints, deliveries with their tries, and which of them wait for
another try. All of it is records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from holdfast.errors import Conflict, NotFound
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
        return [_endpoint(record.value) async for record in self._records_below(ENDPOINTS)]

    async def endpoint(self, id: str) -> Endpoint:
        page = await self._records.get(ENDPOINTS + id)
        if not page.records:
            raise NotFound(f"there is no webhook {id!r}; `holdfast webhooks list` shows them")
        return _endpoint(page.records[0].value)

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
            endpoint = msgspec.structs.replace(_endpoint(record.value), **changes)
            reply = await self._records.put(record.key, _text(endpoint), expected=record.version)
            if isinstance(reply, Stored):
                return endpoint

    async def remove(self, id: str) -> None:
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
        page = await self._records.get(DELIVERIES + _name(endpoint, event))
        return _delivery(page.records[0].value) if page.records else None

    async def deliveries(self, endpoint: str) -> list[Delivery]:
        prefix = f"{DELIVERIES}{endpoint}/"
        return [_delivery(record.value) async for record in self._records_below(prefix)]

    async def due(self) -> list[Delivery]:
        """Deliveries whose time for another try has come."""
        now = await self.now()
        names = [
            record.key.removeprefix(RETRIES)
            async for record in self._records_below(RETRIES)
            if _due(record.value) <= now
        ]
        pages = [await self._records.get(DELIVERIES + name) for name in names]
        return [_delivery(page.records[0].value) for page in pages if page.records]

    # --- all of it --------------------------------------------------------------------------------

    async def _records_below(self, prefix: str) -> AsyncIterator[Record]:
        page = await self._records.list(prefix)
        while page.records:
            for record in page.records:
                yield record
            page = await self._records.list(prefix, after=page.records[-1].key)

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


def _name(endpoint: str, event: str) -> str:
    return f"{endpoint}/{stored_key(event, MAX_EVENT)}"


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
