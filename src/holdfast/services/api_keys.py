"""API keys: create, list, rotate, revoke. A key's text is answered once, by the call that made it;
stored is a digest. Every change is in the audit log before it is made.

A rotated key goes on working beside its successor for a while (`overlap`), so that its users can
change over. A revoked key is refused in every process within 5 seconds. What is revoked or has
expired is kept for `KEPT` seconds, for people to look at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.engine.tenants import tenant_key
from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.model.api_key import ID_LENGTH, PREFIX, Scope, check_scopes, key_digest, make_key
from holdfast.model.limits import duration
from holdfast.model.names import check_tenant
from holdfast.model.replies import Stored
from holdfast.model.tenant import DEFAULT_TENANT
from holdfast.ports.records import Record, Records
from holdfast.services.audit import write_entry
from holdfast.services.record_pages import all_records
from holdfast.services.views import at

KEYS = "api-keys/"
USES = "api-key-uses/"
MADE = "api-keys-made"
"""Says for good that there were keys: when the last one is forgotten, nobody is let in without."""
FIRST = "api-keys-first"
"""Says that the first key was made: of several who try at once, one makes it."""
KEPT = 90 * 86_400.0
OVERLAP = 86_400.0
"""Seconds for which a rotated key still works, unless somebody says otherwise."""
MAX_NAME = 100


class StoredKey(Struct, frozen=True):
    """What is kept of a key. Times are the store's."""

    id: str
    tenant: str
    name: str
    scopes: list[Scope]
    digest: str
    created: float
    created_by: str
    expires: float | None = None
    revoked: float | None = None
    replaced_by: str | None = None


class KeyView(Struct):
    """A key as people see it; `prefix` is how its text begins."""

    id: str
    prefix: str
    tenant: str
    name: str
    scopes: list[Scope]
    state: Literal["active", "expired", "revoked"]
    created: datetime | None
    created_by: str
    expires: datetime | None
    revoked: datetime | None
    replaced_by: str | None
    last_used: datetime | None


class IssuedKey(Struct):
    """A new key, and its text: it can't be shown again."""

    key: KeyView
    text: str


decode_key = msgspec.json.Decoder(StoredKey).decode


class ApiKeys:
    """The keys of a store, over `Records`. `changed` is called with the id of a key that was
    changed here: see `Authenticator.forget`."""

    def __init__(self, records: Records, changed: Callable[[str], None] = lambda id: None) -> None:
        self._records = records
        self._changed = changed

    async def exist(self) -> bool:
        """Whether any key was ever made."""
        kept = await self._records.list(KEYS, limit=1)
        return bool(kept.records or (await self._records.get(MADE)).records)

    async def create(
        self,
        tenant: str,
        scopes: list[str],
        *,
        actor: str,
        name: str = "",
        lifetime: float | None = None,
    ) -> IssuedKey:
        """A key of a tenant that works for `lifetime` seconds, None: until it is revoked."""
        await self._check_tenant(tenant)
        checked = check_scopes(scopes)
        if "admin" in checked and tenant != DEFAULT_TENANT:
            raise InvalidInput(
                f"a key with scope admin may change all tenants, so it belongs to tenant "
                f"{DEFAULT_TENANT!r} and not to {tenant!r}: give it other scopes"
            )
        if len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput(f"a key's name has at most {MAX_NAME} printable characters")
        new = make_key()
        now = (await self._records.get(KEYS + new.id)).now
        expires = None if lifetime is None else now + duration("lifetime of a key", lifetime)
        key = StoredKey(new.id, tenant, name, checked, key_digest(new.text), now, actor, expires)
        await self._audit(actor, "key.create", key, f"scopes {', '.join(checked)}")
        await self._records.put(KEYS + key.id, _encode(key), ttl=_time_to_live(key, now))
        await self._records.put(MADE, "1")
        return IssuedKey(_view(key, now, None), new.text)

    async def create_first(self, *, actor: str) -> IssuedKey:
        """The first key of an installation: of tenant `default`, with scope admin. Raises Conflict
        if there is a key."""
        if await self.exist() or not isinstance(
            await self._records.put(FIRST, '"being made"', ttl=60.0), Stored
        ):
            raise Conflict(
                "there are keys, or were: `holdfast tenants keys list` shows them, and `holdfast "
                "tenants keys create TENANT` makes another one"
            )
        return await self.create(DEFAULT_TENANT, ["admin"], actor=actor, name="first key")

    async def list(self, tenant: str | None = None) -> list[KeyView]:
        """All keys, or those of a tenant, the oldest first."""
        now = (await self._records.get(FIRST)).now
        keys = [decode_key(record.value) async for record in all_records(self._records, KEYS)]
        keys = [key for key in keys if tenant in (None, key.tenant)]
        keys.sort(key=lambda key: (key.created, key.id))
        return [_view(key, now, await self._last_used(key.id)) for key in keys]

    async def get(self, id: str, *, tenant: str | None = None) -> KeyView:
        """Raises NotFound, also for a key of another tenant if one is named."""
        record, now = await self._record(id, tenant)
        key = decode_key(record.value)
        return _view(key, now, await self._last_used(key.id))

    async def rotate(
        self, id: str, *, actor: str, overlap: float = OVERLAP, tenant: str | None = None
    ) -> IssuedKey:
        """A new key with the rights of an old one, which still works for `overlap` seconds. Its
        lifetime, if it has one, begins anew."""
        record, now = await self._record(id, tenant)
        old = decode_key(record.value)
        _refuse_rotating(old, now)
        lifetime = None if old.expires is None else old.expires - old.created
        await self._audit(actor, "key.rotate", old, f"overlap {overlap:g} s")
        issued = await self.create(
            old.tenant, list(old.scopes), actor=actor, name=old.name, lifetime=lifetime
        )
        ends = now + duration("overlap", overlap)
        ends = ends if old.expires is None else min(ends, old.expires)
        replaced = replace(old, expires=ends, replaced_by=issued.key.id)
        reply = await self._records.put(
            record.key, _encode(replaced), expected=record.version, ttl=_time_to_live(replaced, now)
        )
        self._changed(old.id)
        if not isinstance(reply, Stored):
            await self.revoke(issued.key.id, actor=actor, reason="its rotation did not succeed")
            raise Conflict(f"key {old.id} was changed meanwhile: look at it, then try again")
        return issued

    async def revoke(
        self, id: str, *, actor: str, reason: str = "", tenant: str | None = None
    ) -> KeyView:
        """Refuse it from now on, in every process within 5 seconds. Idempotent."""
        while True:
            record, now = await self._record(id, tenant)
            key = decode_key(record.value)
            if key.revoked is not None:
                return _view(key, now, await self._last_used(key.id))
            await self._audit(actor, "key.revoke", key, reason)
            key = replace(key, revoked=now)
            reply = await self._records.put(
                record.key, _encode(key), expected=record.version, ttl=KEPT
            )
            if isinstance(reply, Stored):
                self._changed(key.id)
                return _view(key, now, await self._last_used(key.id))

    async def revoke_all(self, tenant: str, *, actor: str, reason: str = "") -> None:
        """All keys of a tenant that is about to be deleted."""
        for key in await self.list(tenant):
            await self.revoke(key.id, actor=actor, reason=reason)

    async def _record(self, id: str, tenant: str | None) -> tuple[Record, float]:
        """By its id, also as the start of the key's text shows it: `hfk_ID`."""
        id = id.removeprefix(f"{PREFIX}_")[:ID_LENGTH]
        page = await self._records.get(KEYS + id) if id.isalnum() and id.isascii() else None
        if page is None or not page.records:
            raise _unknown(id)
        if tenant is not None and decode_key(page.records[0].value).tenant != tenant:
            raise _unknown(id)
        return page.records[0], page.now

    async def _last_used(self, id: str) -> float | None:
        page = await self._records.get(USES + id)
        return page.records[0].updated if page.records else None

    async def _check_tenant(self, tenant: str) -> None:
        check_tenant(tenant)
        if tenant != DEFAULT_TENANT and not (await self._records.get(tenant_key(tenant))).records:
            raise NotFound(
                f"no tenant {tenant!r}: create it first, with `holdfast tenants create {tenant}`"
            )

    async def _audit(self, actor: str, action: str, key: StoredKey, reason: str) -> None:
        await write_entry(self._records, actor, action, f"{key.tenant}/{key.id}", reason)


def state_of(key: StoredKey, now: float) -> Literal["active", "expired", "revoked"]:
    if key.revoked is not None:
        return "revoked"
    return "expired" if key.expires is not None and now >= key.expires else "active"


def _time_to_live(key: StoredKey, now: float) -> float | None:
    """How long its record is kept: beyond its end, for people to look at."""
    return None if key.expires is None else key.expires - now + KEPT


def _refuse_rotating(key: StoredKey, now: float) -> None:
    if key.replaced_by is not None:
        raise Conflict(f"key {key.id} was rotated: its successor is {key.replaced_by}")
    if (state := state_of(key, now)) != "active":
        raise Conflict(f"key {key.id} is {state}: create a new one")


def _unknown(id: str) -> NotFound:
    return NotFound(f"no key {id!r:.40}; `holdfast tenants keys list` shows what there is")


def _view(key: StoredKey, now: float, last_used: float | None) -> KeyView:
    return KeyView(
        key.id,
        f"{PREFIX}_{key.id}_",
        key.tenant,
        key.name,
        key.scopes,
        state_of(key, now),
        at(key.created),
        key.created_by,
        at(key.expires),
        at(key.revoked),
        key.replaced_by,
        at(last_used),
    )


def _encode(key: StoredKey) -> str:
    return msgspec.json.encode(key).decode()
