"""Who calls: from the text of an API key to the tenant and what it may do.

Nothing but the key decides. A caller learns that its key was refused and not why; the reason is for
the log. If the store can't be asked, StoreUnavailable is raised: nobody is let in on memory."""

from __future__ import annotations

import logging
from typing import Literal

from msgspec import Struct

from holdfast.engine.cached import Cached
from holdfast.engine.tenants import TenantDirectory
from holdfast.errors import HoldfastError
from holdfast.model.api_key import NO_DIGEST, Scope, key_id, matches
from holdfast.model.clock import Clock
from holdfast.model.tenant import DEFAULT_TENANT
from holdfast.ports.records import Records
from holdfast.services.api_keys import KEYS, USES, StoredKey, decode_key, state_of

log = logging.getLogger("holdfast.authentication")

USE_INTERVAL = 60.0
"""Seconds between two notes of one process that a key was used."""
USE_KEPT = 366 * 86_400.0
"""Seconds for which the last use is remembered."""

Reason = Literal["missing", "malformed", "unknown", "expired", "revoked", "tenant"]


class Caller(Struct, frozen=True):
    """Somebody with a good key. `actor` is what the audit log calls it."""

    tenant: str
    scopes: frozenset[Scope]
    key: str

    @property
    def actor(self) -> str:
        return f"key {self.key} of {self.tenant}"

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class Rejected(Struct, frozen=True):
    """Why a key was refused, for the log alone; `key` is its id if it has one."""

    reason: Reason
    key: str | None = None


class _Known(Struct, frozen=True):
    """A key, and the store's time less the monotonic time when it was read."""

    key: StoredKey
    offset: float


class Authenticator:
    """One for each process: it remembers keys for up to four seconds."""

    def __init__(self, records: Records, tenants: TenantDirectory, clock: Clock) -> None:
        self._records = records
        self._tenants = tenants
        self._clock = clock
        self._keys = Cached(self._load, clock)
        self._noted: dict[str, float] = {}

    async def authenticate(self, text: str | None) -> Caller | Rejected:
        """The owner of a key. Raises StoreUnavailable."""
        if not text:
            return Rejected("missing")
        id = key_id(text)
        if id is None:
            return Rejected("malformed")
        known = await self._keys.get(id)
        if known is None:
            self._keys.forget(id)  # it may be made in the next moment
        if not matches(text, known.key.digest if known else NO_DIGEST) or known is None:
            return Rejected("unknown", id)
        return await self._admit(known)

    async def owner(self, id: str) -> Caller | Rejected:
        """The owner of a key that was shown before. Raises StoreUnavailable."""
        known = await self._keys.get(id)
        if known is None:
            self._keys.forget(id)
            return Rejected("unknown", id)
        return await self._admit(known)

    def forget(self, id: str) -> None:
        """A key was changed here: in this process it counts at once."""
        self._keys.forget(id)

    async def _admit(self, known: _Known) -> Caller | Rejected:
        key = known.key
        state = state_of(key, known.offset + self._clock.monotonic())
        if state != "active":
            return Rejected(state, key.id)
        if key.tenant != DEFAULT_TENANT:
            tenant = await self._tenants.get(key.tenant)
            if tenant is None or not tenant.enabled:
                return Rejected("tenant", key.id)
        await self._note_use(key.id)
        return Caller(key.tenant, frozenset(key.scopes), key.id)

    async def _load(self, id: str) -> _Known | None:
        requested = self._clock.monotonic()
        page = await self._records.get(KEYS + id)
        if not page.records:
            return None
        return _Known(decode_key(page.records[0].value), page.now - requested)

    async def _note_use(self, id: str) -> None:
        """For people only: that it can't be written keeps nobody out."""
        now = self._clock.monotonic()
        if now - self._noted.get(id, now - USE_INTERVAL) < USE_INTERVAL:
            return
        self._noted[id] = now
        try:
            before = (await self._records.get(USES + id)).records
            version = before[0].version if before else None
            await self._records.put(USES + id, "1", expected=version, ttl=USE_KEPT)
        except HoldfastError as error:
            log.warning("key %s: its use could not be noted: %s", id, error)
