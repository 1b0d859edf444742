"""Webhooks on an open store."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.services.local.context import ServiceContext
from holdfast.services.webhooks import DeliveryView, WebhookService, WebhookView


class LocalWebhooks:
    def __init__(self, context: ServiceContext) -> None:
        given = context.webhooks
        self._context = context
        self._service = WebhookService(
            context.store, context.runtime.records, given.key, given.allow, context.tenant
        )
        self._actor = context.actor

    async def add(self, url: str, *, events: Sequence[str] = ()) -> WebhookView:
        return await self._service.add(
            url, events=events, tenant=self._context.tenant, actor=self._actor
        )

    async def list(self) -> list[WebhookView]:
        return await self._service.list()

    async def remove(self, id: str) -> None:
        await self._service.remove(id, actor=self._actor)

    async def rotate(self, id: str) -> WebhookView:
        return await self._service.rotate(id, actor=self._actor)

    async def enable(self, id: str) -> WebhookView:
        return await self._service.enable(id, actor=self._actor)

    async def deliveries(self, id: str, *, state: str | None = None) -> list[DeliveryView]:
        return await self._service.deliveries(id, state=state)

    async def replay(self, id: str, event: str) -> DeliveryView:
        return await self._service.replay(id, event, actor=self._actor)

    async def test(self, id: str) -> DeliveryView:
        web = self._context.webhooks.make_web()
        try:
            clock = self._context.runtime.clock
            return await self._service.test(id, web, clock, actor=self._actor)
        finally:
            await web.close()
