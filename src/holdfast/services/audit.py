"""Who intervened, and why. The store keeps what was done to runs and to its own locks; what was
done to anything that is kept in records is a record as well."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from holdfast.model.damage import unless_damaged
from holdfast.model.ids import new_token
from holdfast.ports.records import Record, Records
from holdfast.ports.store import Audit, Store
from holdfast.services.views import at

AUDIT = "audit/"
_FAR = 10_000_000_000.0
"""A time that is still to come: keys count down to it, so that the newest entry comes first."""

_decode = msgspec.json.Decoder(Audit).decode


class AuditView(Struct):
    at: datetime | None
    actor: str
    action: str
    target: str
    reason: str


async def write_entry(
    records: Records, actor: str, action: str, target: str, reason: str = ""
) -> None:
    now = (await records.get(AUDIT)).now
    entry = Audit(now, actor, action, target, reason)
    key = f"{AUDIT}{_FAR - now:018.6f}-{new_token()[:8]}"
    await records.put(key, msgspec.json.encode(entry).decode())


async def entries(store: Store, *, limit: int = 100) -> list[Audit]:
    """All interventions, newest first."""
    page = await store.records(AUDIT, limit=limit)
    both = [*await store.audit(limit=limit), *map(_entry, page.records)]
    return sorted(both, key=lambda entry: -entry.at)[:limit]


def _entry(record: Record) -> Audit:
    damaged = Audit(record.updated, "", "damaged", record.key, "this entry can't be read any more")
    return unless_damaged(_decode, record.value) or damaged


async def audit_views(store: Store, *, limit: int = 100) -> list[AuditView]:
    return [
        AuditView(at(entry.at), entry.actor, entry.action, entry.target, entry.reason)
        for entry in await entries(store, limit=limit)
    ]
