"""Sessions of browsers: who has shown a key once may look at pages for some hours.

A session reads and does nothing else. It stands on its key: when that is revoked or expires, the
session is refused within 5 seconds, too. What the browser keeps is no key, and the store has only
its digest."""

from __future__ import annotations

import msgspec

from holdfast.engine.cached import Cached
from holdfast.errors import Forbidden
from holdfast.model.api_key import ID_LENGTH, NO_DIGEST, key_digest, key_id, make_key, matches
from holdfast.model.clock import Clock
from holdfast.ports.records import Records
from holdfast.services.authentication import Authenticator, Caller, Rejected

SESSIONS = "page-sessions/"
LIFETIME = 12 * 3600.0
"""Seconds until a browser has to log in again."""
MOST = 20
"""Sessions of one key; the oldest ends when there are more."""


class PageSessions:
    """What a browser is given is the id of its key, a point, and a secret in the shape of a key."""

    def __init__(self, records: Records, authenticator: Authenticator, clock: Clock) -> None:
        self._records = records
        self._authenticator = authenticator
        self._digests = Cached(self._load, clock)

    async def open(self, key: str) -> str | Rejected:
        """A session of whoever shows this key. Raises Forbidden for a key that may not read."""
        caller = await self._authenticator.authenticate(key)
        if isinstance(caller, Rejected):
            return caller
        if not caller.may("read"):
            raise Forbidden("this needs a key with the scope read")
        await self._end_oldest(caller.key)
        secret = make_key()
        digest = msgspec.json.encode(key_digest(secret.text)).decode()
        await self._records.put(_record(caller.key, secret.id), digest, ttl=LIFETIME)
        return f"{caller.key}.{secret.text}"

    async def caller(self, session: str) -> Caller | Rejected:
        """Who looks. Raises StoreUnavailable."""
        named = _parts(session)
        if named is None:
            return Rejected("malformed")
        key, record, secret = named
        digest = await self._digests.get(record)
        if digest is None:
            self._digests.forget(record)  # it may be made in the next moment
        if not matches(secret, digest or NO_DIGEST) or digest is None:
            return Rejected("unknown", key)
        caller = await self._authenticator.owner(key)
        if isinstance(caller, Rejected):
            return caller
        return Caller(caller.tenant, frozenset({"read"}), caller.key)

    async def close(self, session: str) -> None:
        """End it. Idempotent; one that is none is left alone."""
        if isinstance(await self.caller(session), Rejected) or (named := _parts(session)) is None:
            return
        _, record, _ = named
        for stored in (await self._records.get(record)).records:
            await self._records.delete(record, expected=stored.version)
        self._digests.forget(record)

    async def _end_oldest(self, key: str) -> None:
        page = await self._records.list(f"{SESSIONS}{key}/", limit=2 * MOST)
        for stored in sorted(page.records, key=lambda stored: -stored.updated)[MOST - 1 :]:
            await self._records.delete(stored.key, expected=stored.version)
            self._digests.forget(stored.key)

    async def _load(self, record: str) -> str | None:
        page = await self._records.get(record)
        return msgspec.json.decode(page.records[0].value, type=str) if page.records else None


def _record(key: str, session: str) -> str:
    return f"{SESSIONS}{key}/{session}"


def _parts(session: str) -> tuple[str, str, str] | None:
    """The key's id, the name of the record, and the secret."""
    key, _, secret = session.partition(".")
    id = key_id(secret)
    if id is None or len(key) != ID_LENGTH or not (key.isalnum() and key.isascii()):
        return None
    return key, _record(key, id), secret
