"""Webhooks of another process's service."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from holdfast.client.transport import Transport
from holdfast.services.service import Page
from holdfast.services.webhooks import DeliveryView, WebhookView

SEND_TIME = 30.0
"""Seconds that a test event may be under way."""


def _path(*parts: str) -> str:
    return "/".join(["/v1/webhooks", *[quote(part, safe=":") for part in parts]])


class RemoteWebhooks:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask
        self._send = transport.send

    async def add(self, url: str, *, events: Sequence[str] = ()) -> WebhookView:
        body = {"url": url, "events": list(events)}
        return await self._ask("POST", _path(), WebhookView, body=body)

    async def list(self) -> list[WebhookView]:
        return (await self._ask("GET", _path(), Page[WebhookView])).items

    async def remove(self, id: str) -> None:
        await self._send("DELETE", _path(id))

    async def rotate(self, id: str) -> WebhookView:
        return await self._ask("POST", _path(id, "rotate"), WebhookView)

    async def enable(self, id: str) -> WebhookView:
        return await self._ask("POST", _path(id, "enable"), WebhookView)

    async def deliveries(self, id: str, *, state: str | None = None) -> list[DeliveryView]:
        path, query = _path(id, "deliveries"), {"state": state}
        return (await self._ask("GET", path, Page[DeliveryView], query=query)).items

    async def replay(self, id: str, event: str) -> DeliveryView:
        return await self._ask("POST", _path(id, "deliveries", event, "replay"), DeliveryView)

    async def test(self, id: str) -> DeliveryView:
        return await self._ask("POST", _path(id, "test"), DeliveryView, wait=SEND_TIME)
