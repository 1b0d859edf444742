"""Tenants: create, list, change, delete. Every change is in the audit log before it is made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.engine.admission import consumption
from holdfast.engine.runtime import Runtime
from holdfast.engine.tenants import PREFIX, USAGE, decode_tenant, readable_tenants, tenant_key
from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.model.commands import LimitTenant
from holdfast.model.names import check_tenant
from holdfast.model.quota import at_time
from holdfast.model.replies import Stored
from holdfast.model.run import RunState
from holdfast.model.tenant import DEFAULT_TENANT, Quotas, Tenant, check_quotas
from holdfast.ports.records import Record
from holdfast.ports.store import RunFilter, Store
from holdfast.services.api_keys import ApiKeys
from holdfast.services.audit import write_entry
from holdfast.services.record_pages import all_records
from holdfast.services.views import at

LIVE = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)


class Usage(Struct):
    """What a tenant uses of its quotas now, by the names of `Quotas`."""

    running: int
    per_minute: int
    queued: int
    per_day: int
    per_month: int


async def usage_of(store: Store, name: str) -> Usage:
    """What a tenant uses now."""
    states = await store.count(RunFilter(tenant=name))
    page = await store.record(tenant_key(name, USAGE))
    used = at_time(consumption(page.records), page.now)
    return Usage(
        states.get(RunState.RUNNING, 0),
        used.last_minute,
        states.get(RunState.QUEUED, 0),
        used.today,
        used.this_month,
    )


class TenantView(Struct, omit_defaults=True):
    """A tenant as people see it, with what it uses now if that was asked for."""

    name: str
    enabled: bool
    created: datetime | None
    quotas: Quotas
    usage: Usage | None = None


def tenant_view(tenant: Tenant, usage: Usage | None = None) -> TenantView:
    return TenantView(tenant.name, tenant.enabled, at(tenant.created), tenant.quotas, usage)


class Tenants:
    """The tenants of a store. Changes are known in every process four seconds later."""

    def __init__(self, runtime: Runtime, keys: ApiKeys) -> None:
        self._runtime = runtime
        self._keys = keys
        self._records = runtime.records

    async def create(self, name: str, quotas: Quotas | None = None, *, actor: str) -> Tenant:
        """Raises Conflict if there is such a tenant."""
        check_tenant(name)
        quotas = check_quotas(quotas or Quotas())
        if name == DEFAULT_TENANT:
            raise InvalidInput(
                f"tenant {DEFAULT_TENANT!r} is there without being created, and has no quotas"
            )
        page = await self._records.get(tenant_key(name))
        if page.records:
            raise _exists(name)
        tenant = Tenant(name, page.now, quotas)
        await write_entry(self._records, actor, "tenant.create", name, _described(tenant))
        await self._limit(tenant, actor)
        if not isinstance(await self._records.put(tenant_key(name), _encode(tenant)), Stored):
            raise _exists(name)
        self._runtime.tenants.forget(name)
        return tenant

    async def get(self, name: str) -> Tenant:
        """Raises NotFound."""
        return decode_tenant(await self._record(name))

    async def list(self) -> list[Tenant]:
        """All that were created, by name."""
        return readable_tenants([r async for r in all_records(self._records, PREFIX)])

    async def usage(self, name: str) -> Usage:
        """Of any tenant, created or not."""
        return await usage_of(self._runtime.store, name)

    async def set(
        self, name: str, *, actor: str, enabled: bool | None = None, **quotas: int | None
    ) -> Tenant:
        """Change what is named: `enabled`, and quotas by their names, None for no limit."""
        while True:
            record = await self._record(name)
            tenant = _changed(decode_tenant(record), enabled, quotas)
            await write_entry(self._records, actor, "tenant.set", name, _described(tenant))
            reply = await self._records.put(
                tenant_key(name), _encode(tenant), expected=record.version
            )
            if isinstance(reply, Stored):
                break
        if "running" in quotas:
            await self._limit(tenant, actor)
        self._runtime.tenants.forget(name)
        return tenant

    async def delete(self, name: str, *, actor: str, reason: str = "") -> None:
        """Delete a tenant that has no live runs, its quotas and its keys. Its finished runs stay
        until retention deletes them. Raises Conflict while runs of it are live."""
        record = await self._record(name)
        states = await self._runtime.store.count(RunFilter(tenant=name))
        if live := sum(states.get(state, 0) for state in LIVE):
            raise Conflict(
                f"tenant {name!r} has {live} live runs: disable it with `holdfast tenants set "
                f"{name} --disable`, then cancel them or wait for their end"
            )
        await write_entry(self._records, actor, "tenant.delete", name, reason)
        await self._keys.revoke_all(name, actor=actor, reason="its tenant was deleted")
        await self._runtime.committer.send(LimitTenant(name, None, actor))
        for usage in (await self._records.get(tenant_key(name, USAGE))).records:
            await self._records.delete(usage.key, expected=usage.version)
        if not await self._records.delete(tenant_key(name), expected=record.version):
            raise Conflict(f"tenant {name!r} was changed meanwhile: look at it, then try again")
        self._runtime.tenants.forget(name)

    async def _limit(self, tenant: Tenant, actor: str) -> None:
        limit = LimitTenant(tenant.name, tenant.quotas.running, actor)
        await self._runtime.committer.send(limit)

    async def _record(self, name: str) -> Record:
        page = await self._records.get(tenant_key(name))
        if not page.records:
            raise NotFound(f"no tenant {name!r:.80}; `holdfast tenants list` shows what there is")
        return page.records[0]


def _changed(tenant: Tenant, enabled: bool | None, quotas: dict[str, Any]) -> Tenant:
    changed = check_quotas(replace(tenant.quotas, **quotas))
    return replace(tenant, quotas=changed, enabled=tenant.enabled if enabled is None else enabled)


def _described(tenant: Tenant) -> str:
    """For the audit log."""
    quotas = msgspec.to_builtins(tenant.quotas)
    limits = ", ".join(f"{name} {value}" for name, value in quotas.items() if value is not None)
    return f"{'enabled' if tenant.enabled else 'disabled'}; {limits or 'no quotas'}"


def _exists(name: str) -> Conflict:
    return Conflict(f"there is a tenant {name!r}: change it with `holdfast tenants set {name}`")


def _encode(tenant: Tenant) -> str:
    return msgspec.json.encode(tenant).decode()
