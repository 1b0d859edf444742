"""Tenants and API keys on an open store."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import InvalidInput
from holdfast.model.tenant import Quotas
from holdfast.services.api_keys import IssuedKey, KeyView
from holdfast.services.local.context import ServiceContext
from holdfast.services.tenants import TenantView, tenant_view


class LocalTenants:
    def __init__(self, context: ServiceContext) -> None:
        self._tenants = context.tenants
        self._actor = context.actor

    async def create(self, name: str, quotas: Quotas) -> TenantView:
        return tenant_view(await self._tenants.create(name, quotas, actor=self._actor))

    async def list(self) -> list[TenantView]:
        return [tenant_view(tenant) for tenant in await self._tenants.list()]

    async def show(self, name: str) -> TenantView:
        return tenant_view(await self._tenants.get(name), await self._tenants.usage(name))

    async def set(
        self, name: str, *, enabled: bool | None = None, quotas: Mapping[str, int | None]
    ) -> TenantView:
        if unknown := set(quotas) - set(Quotas.__struct_fields__):
            known = ", ".join(Quotas.__struct_fields__)
            raise InvalidInput(f"there is no quota {unknown.pop()!r:.80}; known: {known}")
        tenant = await self._tenants.set(name, actor=self._actor, enabled=enabled, **quotas)
        return tenant_view(tenant)

    async def delete(self, name: str, *, reason: str = "") -> None:
        await self._tenants.delete(name, actor=self._actor, reason=reason)


class LocalKeys:
    def __init__(self, context: ServiceContext) -> None:
        self._keys = context.keys
        self._actor = context.actor

    async def create(
        self, tenant: str, scopes: list[str], *, name: str = "", lifetime: float | None = None
    ) -> IssuedKey:
        return await self._keys.create(
            tenant, scopes, actor=self._actor, name=name, lifetime=lifetime
        )

    async def create_first(self) -> IssuedKey:
        return await self._keys.create_first(actor=self._actor)

    async def list(self, tenant: str | None = None) -> list[KeyView]:
        return await self._keys.list(tenant)

    async def rotate(self, id: str, *, overlap: float) -> IssuedKey:
        return await self._keys.rotate(id, actor=self._actor, overlap=overlap)

    async def revoke(self, id: str, *, reason: str = "") -> KeyView:
        return await self._keys.revoke(id, actor=self._actor, reason=reason)
