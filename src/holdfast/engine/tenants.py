"""The tenants of a store, as the engine looks at them: a record each, read through a cache.

Tenants that nobody created have no record, no quotas, and work as they are. As long as there is no
tenant at all, the store is asked once in two seconds whether that has changed."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from holdfast.engine.cached import Cached
from holdfast.model.clock import Clock
from holdfast.model.tenant import DEFAULT_TENANT, Tenant
from holdfast.ports.records import Records

PREFIX = "tenants/"
USAGE = "tenant-usage/"

decode_tenant = msgspec.json.Decoder(Tenant).decode


def tenant_key(name: str, prefix: str = PREFIX) -> str:
    return prefix + quote(name, safe="")


class TenantDirectory:
    """What is known of a tenant, at most four seconds old."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._cached = Cached(self._load, clock)
        self._is_used = Cached(self._has_tenants, clock)

    async def get(self, name: str) -> Tenant | None:
        """The tenant, if it was created. Raises StoreUnavailable."""
        if name == DEFAULT_TENANT or not await self._is_used.get(""):
            return None
        return await self._cached.get(name)

    def forget(self, name: str) -> None:
        """It was changed here."""
        self._cached.forget(name)
        self._is_used.forget("")

    async def _load(self, name: str) -> Tenant | None:
        page = await self._records.get(tenant_key(name))
        return decode_tenant(page.records[0].value) if page.records else None

    async def _has_tenants(self, _: str) -> bool:
        return bool((await self._records.list(PREFIX, limit=1)).records)
