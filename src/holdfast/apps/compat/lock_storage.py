"""Where pipeline locks live: in a store, or in Firestore, where each is a document of the
collection `pipeline_locks` with the fields that programs of pipeline locks know."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from holdfast.adapters.firestore.collections import RecordCollection
from holdfast.adapters.records import StoreRecords
from holdfast.bootstrap import has_port, make_records, make_store, with_server_settings
from holdfast.model.clock import Clock
from holdfast.ports.records import Records
from holdfast.ports.store import Store
from holdfast.services.pipeline_locks import LOCKS, NOTES, decode_lock
from holdfast.settings import Loaded

MEMORY = "memory:"


class LockStorage(Protocol):
    """Records, and when they can be used."""

    records: Records
    is_shared: bool
    """Whether other processes see them."""

    async def ready(self) -> None:
        """Open what has to be opened, once."""
        ...

    async def close(self) -> None: ...


class _InStore:
    """A store that is opened by the first who needs it, while the others wait: callers may be tasks
    of different event loops in different threads."""

    def __init__(self, store: Store) -> None:
        self.records: Records = StoreRecords(store)
        self.is_shared = store.features.shared
        self._store = store
        self._is_open = False
        self._guard = threading.Lock()

    async def ready(self) -> None:
        while not self._is_open:
            if not self._guard.acquire(blocking=False):
                await asyncio.sleep(0.001)
                continue
            try:
                await self._store.open()
                self._is_open = True
            finally:
                self._guard.release()

    async def close(self) -> None:
        if self.is_shared:  # in memory the locks would be gone
            self._is_open = False
            await self._store.close()


class _InRecords:
    """Records that are on their own."""

    is_shared = True

    def __init__(self, records: Any) -> None:
        self.records: Records = records

    async def ready(self) -> None:
        """The first request connects."""

    async def close(self) -> None:
        await self.records.close()  # type: ignore[attr-defined]


def lock_storage(store: str | Store | None, loaded: Loaded, clock: Clock) -> LockStorage:
    """What the caller names, else `locks.store`, else the store of the settings, else memory."""
    settings = loaded.settings
    if store is None:
        own = MEMORY if loaded.is_default("store") else settings.store
        store = settings.locks.store or own
    if not isinstance(store, str):
        return _InStore(store)
    url = with_server_settings(store, settings)
    if has_port(url, "records"):
        return _InRecords(make_records(url, COLLECTIONS))
    return _InStore(make_store(url, clock))


def document_id(name: str) -> str:
    """`{tenant}_{pipeline}`. A `_` in the tenant is encoded: `a_b` with `c` and `a` with `b_c` have
    documents of their own."""
    tenant, _, pipeline = name.partition("/")
    return f"{tenant.replace('_', '%5F')}_{pipeline}"


def _fields(value: str, now: float, ttl: float | None) -> Mapping[str, Any]:
    lock = decode_lock(value)
    return {
        **lock.fields,
        "locked_at": datetime.fromtimestamp(lock.locked_at or now, UTC),
        "locked_by": lock.locked_by,
        "ttl": datetime.fromtimestamp(now + (ttl or lock.timeout), UTC),
    }


COLLECTIONS = (
    RecordCollection("pipeline_locks", LOCKS, document_id, _fields),
    RecordCollection("pipeline_lock_notes", NOTES, document_id),
)
