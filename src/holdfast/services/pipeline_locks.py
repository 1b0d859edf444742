"""Pipeline locks: one holder for each tenant and pipeline, for a time that ends by itself.

A lock is a record that is made only if there is none, and that the store forgets after its
timeout, by its own monotonic clock. Replacing and deleting name the version that was read, so that
nobody touches the lock of a successor. These locks keep callers apart who ask first; they fence no
writes. What must not be done twice is a step of a run.

Beside each lock lies a note of who took it. It outlives the lock: if it is still there when
somebody takes the lock anew, the lock before has not been released but has expired."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec
from msgspec import Struct

from holdfast.errors import InvalidInput, NotFound
from holdfast.model.ids import new_token
from holdfast.model.replies import Stored
from holdfast.ports.records import Record, Records

log = logging.getLogger("holdfast.pipeline_locks")

PREFIX = "pipeline_lock:"
"""What the names of pipeline locks begin with, for people."""
LOCKS = "pipeline-lock/"
NOTES = "pipeline-lock-note/"
NOTE_LIFE = 7 * 86_400.0
"""How long it is remembered that a lock was not released, after it has expired, in seconds."""
PAGE = 200


class HeldLock(Struct, frozen=True, omit_defaults=True):
    """Who holds the lock of a pipeline. Times are seconds, `locked_at` is the store's time."""

    id: str
    tenant: str
    pipeline: str
    locked_at: float
    locked_by: str
    timeout: float
    reason: str = ""
    token: str = ""
    """Of this one acquisition: whoever lost its answer knows the lock for its own by it."""

    @property
    def name(self) -> str:
        """What people call it, and how it is listed."""
        return f"{PREFIX}{self.tenant}:{self.pipeline}"

    @property
    def fields(self) -> dict[str, str]:
        return {
            "tenant_id": self.tenant,
            "pipeline_id": self.pipeline,
            "pipeline_logging_id": self.id,
        }


class LockLease(Struct, frozen=True):
    """A lock that is held, the version of its record, the store's time when it was read, and about
    how long it still lasts then."""

    lock: HeldLock
    version: str
    now: float
    remaining: float


decode_lock = msgspec.json.Decoder(HeldLock).decode


class PipelineLocks:
    """Written over `Records`, and so the same on every store. Raises StoreUnavailable when the
    store can't be reached: then nothing is known, and nobody should go on."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def take(self, new: HeldLock) -> HeldLock:
        """Take the lock if it is free. The answer is who holds it now: `wanted`, with the moment at
        which it was taken, or somebody else.

        With the token of an acquisition whose answer was lost, that acquisition counts."""
        key = _key(LOCKS, new.tenant, new.pipeline)
        while True:
            page = await self._records.get(key)
            if page.records:
                return decode_lock(page.records[0].value)
            lock = msgspec.structs.replace(new, locked_at=page.now)
            reply = await self._records.put(key, _encode(lock), ttl=lock.timeout)
            if isinstance(reply, Stored):
                await self._note(lock)
                return lock

    async def get(self, tenant: str, pipeline: str) -> LockLease | None:
        page = await self._records.get(_key(LOCKS, tenant, pipeline))
        return _lease(page.records[0], page.now) if page.records else None

    async def renew(self, tenant: str, pipeline: str, id: str) -> LockLease | None:
        """Let its time begin anew; None if `id` does not hold it any more."""
        lease = await self.get(tenant, pipeline)
        if lease is None or lease.lock.id != id:
            return None
        key, timeout = _key(LOCKS, tenant, pipeline), lease.lock.timeout
        reply = await self._records.put(
            key, _encode(lease.lock), expected=lease.version, ttl=timeout
        )
        return lease if isinstance(reply, Stored) else None

    async def release(self, tenant: str, pipeline: str, id: str) -> LockLease | None:
        """Give it back; None if `id` does not hold it any more. A renewal in between does not
        matter."""
        key = _key(LOCKS, tenant, pipeline)
        while (lease := await self.get(tenant, pipeline)) is not None and lease.lock.id == id:
            if await self._records.delete(key, expected=lease.version):
                await self._forget_note(lease.lock)
                return lease
        return None

    async def force_release(self, name: str) -> HeldLock:
        """Take a lock away from whoever holds it."""
        async for lease in self.held():
            if lease.lock.name == name and await self.release(
                lease.lock.tenant, lease.lock.pipeline, lease.lock.id
            ):
                return lease.lock
        raise NotFound(f"lock {name!r} is not held; `holdfast locks list` shows what there is")

    async def held(self, tenant: str | None = None) -> AsyncIterator[LockLease]:
        """All locks, or those of a tenant."""
        prefix = LOCKS if tenant is None else f"{LOCKS}{_part(tenant)}/"
        async for record, now in self._records_below(prefix):
            yield _lease(record, now)

    async def _records_below(self, prefix: str) -> AsyncIterator[tuple[Record, float]]:
        """The records of a prefix, each with the store's time."""
        after = ""
        while True:
            page = await self._records.list(prefix, after=after, limit=PAGE)
            for record in page.records:
                yield record, page.now
            if len(page.records) < PAGE:
                return
            after = page.records[-1].key

    # --- what has expired -------------------------------------------------------------------------

    async def warn_of_expired(self) -> None:
        """Say which locks have ended without being released, once each."""
        tokens = {lease.lock.token async for lease in self.held()}
        async for note, _ in self._records_below(NOTES):
            if decode_lock(note.value).token not in tokens:
                await self._check(note)

    async def _check(self, note: Record) -> None:
        lock = decode_lock(note.value)
        holder = await self.get(lock.tenant, lock.pipeline)
        expired = holder is None or holder.lock.token != lock.token
        # Only who removes the note says so: of many processes one.
        if expired and await self._records.delete(note.key, expected=note.version):
            _warn(lock)

    async def _note(self, lock: HeldLock) -> None:
        key = _key(NOTES, lock.tenant, lock.pipeline)
        page = await self._records.get(key)
        before = page.records[0] if page.records else None
        reply = await self._records.put(
            key,
            _encode(lock),
            expected=before.version if before else None,
            ttl=lock.timeout + NOTE_LIFE,
        )
        if before is not None and isinstance(reply, Stored):
            _warn(decode_lock(before.value))

    async def _forget_note(self, lock: HeldLock) -> None:
        page = await self._records.get(_key(NOTES, lock.tenant, lock.pipeline))
        for note in page.records:
            if decode_lock(note.value).token == lock.token:
                await self._records.delete(note.key, expected=note.version)


def new_lock(
    tenant: str, pipeline: str, id: str, locked_by: str, timeout: float, reason: str = ""
) -> HeldLock:
    """A lock to be taken."""
    return HeldLock(id, tenant, pipeline, 0.0, locked_by, timeout, reason, new_token())


def _warn(lock: HeldLock) -> None:
    log.warning(
        "Removed expired lock: %s:%s",
        lock.tenant,
        lock.pipeline,
        extra={**lock.fields, "fields": {**lock.fields, "locked_by": lock.locked_by}},
    )


def _lease(record: Record, now: float) -> LockLease:
    lock = decode_lock(record.value)
    return LockLease(lock, record.version, now, max(0.0, record.updated + lock.timeout - now))


def _encode(lock: HeldLock) -> str:
    return msgspec.json.encode(lock).decode()


def _key(prefix: str, tenant: str, pipeline: str) -> str:
    return f"{prefix}{_part(tenant)}/{_part(pipeline)}"


def _part(name: str) -> str:
    """A name as a part of a key: `a/b` and `a` with `b` are not the same."""
    if not name:
        raise InvalidInput("a pipeline lock needs a tenant and a pipeline")
    return quote(name, safe="")
