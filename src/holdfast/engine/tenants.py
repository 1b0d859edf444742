"""The tenants of a store, as the engine looks at them: a record each, read through a cache.

Tenants that nobody created have no record, no quotas, and work as they are. As long as there is no
tenant at all, the store is asked once in two seconds whether that has changed."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from holdfast.engine.cached import Cached
from holdfast.errors import Damaged
from holdfast.model.clock import Clock
from holdfast.model.damage import unless_damaged
from holdfast.model.tenant import DEFAULT_TENANT, Tenant
from holdfast.ports.records import Record, Records

PREFIX = "tenants/"
USAGE = "tenant-usage/"

_decode = msgspec.json.Decoder(Tenant).decode


def decode_tenant(record: Record) -> Tenant:
    """Raises Damaged: what a tenant may do is not guessed."""
    tenant = unless_damaged(_decode, record.value)
    if tenant is None:
        raise Damaged(f"the record {record.key!r} of a tenant can't be read: nothing is accepted")
    return tenant


def readable_tenants(records: Iterable[Record]) -> list[Tenant]:
    """A damaged one hides no other."""
    tenants = [unless_damaged(_decode, record.value) for record in records]
    return [tenant for tenant in tenants if tenant is not None]


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
        return decode_tenant(page.records[0]) if page.records else None

    async def _has_tenants(self, _: str) -> bool:
        return bool((await self._records.list(PREFIX, limit=1)).records)
