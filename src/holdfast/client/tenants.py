"""Tenants and API keys of another process's service."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from holdfast.client.transport import Transport
from holdfast.errors import Conflict
from holdfast.model.tenant import DEFAULT_TENANT, Quotas
from holdfast.services.api_keys import IssuedKey, KeyView
from holdfast.services.service import Page
from holdfast.services.tenants import TenantView


def _tenant(name: str) -> str:
    return f"/v1/tenants/{quote(name, safe='')}"


class RemoteTenants:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask
        self._send = transport.send

    async def create(self, name: str, quotas: Quotas) -> TenantView:
        body = {"name": name, "quotas": quotas}
        return await self._ask("POST", "/v1/tenants", TenantView, body=body)

    async def list(self) -> list[TenantView]:
        return (await self._ask("GET", "/v1/tenants", Page[TenantView])).items

    async def show(self, name: str) -> TenantView:
        return await self._ask("GET", _tenant(name), TenantView)

    async def set(
        self, name: str, *, enabled: bool | None = None, quotas: Mapping[str, int | None]
    ) -> TenantView:
        body = {"enabled": enabled, "quotas": dict(quotas)}
        return await self._ask("PATCH", _tenant(name), TenantView, body=body)

    async def delete(self, name: str, *, reason: str = "") -> None:
        await self._send("DELETE", _tenant(name), query={"reason": reason})


class RemoteKeys:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask

    async def create(
        self, tenant: str, scopes: list[str], *, name: str = "", lifetime: float | None = None
    ) -> IssuedKey:
        body = {"tenant": tenant, "scopes": scopes, "name": name, "lifetime": lifetime}
        return await self._ask("POST", "/v1/keys", IssuedKey, body=body)

    async def create_first(self) -> IssuedKey:
        """A service that answers without a key has none."""
        if await self.list():
            raise Conflict("there are keys, or were: `holdfast tenants keys list` shows them")
        return await self.create(DEFAULT_TENANT, ["admin"], name="first key")

    async def list(self, tenant: str | None = None) -> list[KeyView]:
        query = {"tenant": tenant}
        return (await self._ask("GET", "/v1/keys", Page[KeyView], query=query)).items

    async def rotate(self, id: str, *, overlap: float) -> IssuedKey:
        path = f"/v1/keys/{quote(id, safe='')}/rotate"
        return await self._ask("POST", path, IssuedKey, body={"overlap": overlap})

    async def revoke(self, id: str, *, reason: str = "") -> KeyView:
        path = f"/v1/keys/{quote(id, safe='')}/revoke"
        return await self._ask("POST", path, KeyView, body={"reason": reason})
