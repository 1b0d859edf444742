"""Records as documents of Firestore, changed by preconditions: a write names the update time of the
document that it replaces, or that there is none.

A document has what the record is in the field `holdfast`, beside fields that a collection shows to
other programs. Time is the server's: a record is gone when the time at which it was read is past
its update time by its time to live. It stays in the collection, unseen, until it is replaced or
listed; Firestore's own TTL policy on the field `expires` may remove it earlier."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from google.cloud.firestore_v1.base_document import DocumentSnapshot
from google.cloud.firestore_v1.base_query import FieldFilter
from msgspec import Struct

from holdfast.adapters.firestore import address as addresses
from holdfast.adapters.firestore.client import Client
from holdfast.adapters.firestore.collections import RECORDS, RecordCollection
from holdfast.adapters.records import check_record
from holdfast.errors import StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.model.ids import new_token
from holdfast.model.replies import Changed, Stored
from holdfast.ports.records import Record, RecordPage

KEY = "holdfast.key"
TRIES = 30
"""How often a write may lose against others that change nothing which it looks at."""


class _StoredDocument(Struct, frozen=True):
    """A document as it was read. `record` is None if there is none, or if it has expired."""

    snapshot: DocumentSnapshot[Any]
    record: Record | None
    now: float

    @property
    def version(self) -> str | None:
        return self.record.version if self.record is not None else None


class FirestoreRecords:
    """`Records` in a project's database, shared by any number of processes."""

    def __init__(
        self,
        url: str,
        collections: Sequence[RecordCollection] = (),
        *,
        test_clock: Clock | None = None,
    ) -> None:
        self.address = addresses.parse(url)
        self._collections = (*collections, RECORDS)
        self._client = Client(self.address, StoreUnavailable)
        self._test_clock = test_clock

    async def close(self) -> None:
        await self._client.close()

    async def get(self, key: str) -> RecordPage:
        stored = await self._find(key)
        return RecordPage([stored.record] if stored.record is not None else [], stored.now)

    async def put(
        self, key: str, value: str, *, expected: str | None = None, ttl: float | None = None
    ) -> Stored | Changed:
        check_record(key, value)
        for _ in range(TRIES):
            stored = await self._find(key)
            if stored.version != expected:
                return Changed(stored.version)
            version = new_token()
            written = await self._write(stored, key, value, version, ttl)
            if written is not None:
                return Stored(version, written if self._test_clock is None else stored.now)
        raise self._contended(key)

    async def delete(self, key: str, *, expected: str) -> bool:
        for _ in range(TRIES):
            stored = await self._find(key)
            if stored.version != expected:
                return False
            if await self._remove(stored.snapshot) is not None:
                return True
        raise self._contended(key)

    async def list(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        collections = [c for c in self._collections if c.may_hold(prefix)]
        pages = await asyncio.gather(
            *[self._list_one(c, prefix, after, limit) for c in collections]
        )
        records = [record for page in pages for record in page.records]
        records.sort(key=lambda record: record.key.encode())
        return RecordPage(records[:limit], max(page.now for page in pages))

    # --- writing ----------------------------------------------------------------------------------

    async def _write(
        self, stored: _StoredDocument, key: str, value: str, version: str, ttl: float | None
    ) -> float | None:
        now = stored.now
        own = {"key": key, "value": value, "version": version, "ttl": ttl}
        if self._test_clock is not None:
            own["updated"] = now
        fields: dict[str, Any] = {
            **self._collection(key).fields(value, now, ttl),
            "holdfast": own,
            "expires": None if ttl is None else datetime.fromtimestamp(now + ttl, UTC),
        }
        snapshot, batch = stored.snapshot, self._client.here.batch()
        if snapshot.exists:
            batch.update(snapshot.reference, fields, self._unchanged(snapshot))
        else:
            batch.create(snapshot.reference, fields)
        return await self._client.commit(batch)

    async def _remove(self, snapshot: DocumentSnapshot[Any]) -> float | None:
        batch = self._client.here.batch()
        batch.delete(snapshot.reference, self._unchanged(snapshot))
        return await self._client.commit(batch)

    def _unchanged(self, snapshot: DocumentSnapshot[Any]) -> Any:
        return self._client.here.write_option(last_update_time=snapshot.update_time)

    # --- reading ----------------------------------------------------------------------------------

    def _collection(self, key: str) -> RecordCollection:
        return next(c for c in self._collections if key.startswith(c.prefix))

    async def _find(self, key: str) -> _StoredDocument:
        collection = self._collection(key)
        id = collection.document_id(key) or "-"
        return self._read_record(await self._client.get(self._client.document(collection.name, id)))

    async def _list_one(
        self, collection: RecordCollection, prefix: str, after: str, limit: int
    ) -> RecordPage:
        """What has expired is left out, and removed on the way."""
        query = self._client.here.collection(collection.name).order_by(KEY)
        start = FieldFilter(KEY, ">", after) if after > prefix else FieldFilter(KEY, ">=", prefix)
        records: builtins.list[Record] = []
        now: float | None = None
        async for snapshot in self._client.stream(query.where(filter=start)):
            stored = self._read_record(snapshot)
            now = stored.now
            if not snapshot.get(KEY).startswith(prefix) or len(records) == limit:
                break
            if stored.record is not None:
                records.append(stored.record)
            else:
                await self._remove(snapshot)
        return RecordPage(records, (await self._find("-")).now if now is None else now)

    def _read_record(self, snapshot: DocumentSnapshot[Any]) -> _StoredDocument:
        now = self._now(snapshot)
        if not snapshot.exists:
            return _StoredDocument(snapshot, None, now)
        own = (snapshot.to_dict() or {}).get("holdfast")
        if own is None:
            raise self._foreign(snapshot)
        updated = own.get("updated") if self._test_clock else snapshot.update_time.timestamp()
        record = Record(own["key"], own["value"], own["version"], updated)
        is_over = own["ttl"] is not None and now >= updated + own["ttl"]
        return _StoredDocument(snapshot, None if is_over else record, now)

    def _now(self, snapshot: DocumentSnapshot[Any]) -> float:
        if self._test_clock is not None:
            return self._test_clock.now()
        read_time: Any = snapshot.read_time
        return read_time.timestamp()

    def _foreign(self, snapshot: DocumentSnapshot[Any]) -> StoreUnavailable:
        """Whoever wrote it may rely on it: it is neither read nor replaced."""
        path = snapshot.reference.path
        return StoreUnavailable(
            f"{path} in {self.address} was written by another program: stop that, then delete the "
            "document"
        )

    def _contended(self, key: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"record {key!r} in {self.address}: it has too many concurrent writers"
        )
