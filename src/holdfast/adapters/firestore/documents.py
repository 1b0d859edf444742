"""Documents as documents of Firestore. `reports/r-1` is the document `r-1` of the collection
`reports`; more segments become part of the id, percent-encoded, and a key of one segment is in the
collection `documents`.

The fields of a JSON object become the document's fields. Fields that others have written beside
them stay as they are; those that we wrote earlier and do not write any more are removed. Anything
else than an object is kept in the field `body`, as bytes.

The version of a document is in the collection `holdfast_documents`. Both are written by one commit
whose precondition is that nobody has changed the version in the meantime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from google.cloud.firestore_v1 import DELETE_FIELD
from google.cloud.firestore_v1.async_document import AsyncDocumentReference
from google.cloud.firestore_v1.base_document import DocumentSnapshot
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.field_path import FieldPath
from msgspec import Struct

from holdfast.adapters.firestore import address as addresses
from holdfast.adapters.firestore.client import Client
from holdfast.adapters.firestore.ids import MAX_ID, encoded_id
from holdfast.errors import InvalidInput, Transient
from holdfast.model.clock import Clock, SystemClock
from holdfast.ports.documents import REMEMBERED

PLAIN = "documents"
"""The collection of documents whose keys have one segment."""
VERSIONS = "holdfast_documents"
RESERVED = "holdfast_"
TIDY_INTERVAL = 60.0
"""Between two looks for expired documents, in seconds."""
TRIES = 50


class _Entry(Struct, frozen=True):
    """The version of a document: what was last done to it, and what is due."""

    collection: str
    id: str
    version: str
    fields: list[str]
    """Those that we wrote."""
    is_deleted: bool = False
    due: float | None = None
    """When it is to be deleted or, after that, to be forgotten, in seconds since 1970."""


class FirestoreDocuments:
    """`Documents` in a project's database, shared by any number of processes."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.address = addresses.parse(url)
        self._client = Client(self.address, Transient)
        self._clock = clock or SystemClock()
        self._tidied: float | None = None

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        collection, id = place_of(key)
        fields = fields_of(body)
        due = None if ttl is None else self._clock.now() + ttl
        entry = _Entry(collection, id, version, sorted(fields), due=due)
        return await self._write(key, entry, fields)

    async def delete(self, key: str, *, version: str) -> bool:
        collection, id = place_of(key)
        due = self._clock.now() + REMEMBERED
        return await self._write(key, _Entry(collection, id, version, [], True, due), {})

    async def close(self) -> None:
        await self._client.close()

    async def _write(self, key: str, entry: _Entry, fields: Mapping[str, Any]) -> bool:
        await self._tidy()
        beside = self._client.document(VERSIONS, encoded_id(key))
        for _ in range(TRIES):
            snapshot = await self._client.get(beside)
            before = _entry(snapshot)
            if before is not None and before.version >= entry.version:
                return False
            if await self._commit(snapshot, before, entry, fields):
                return True
        raise Transient(f"document {key!r} in {self.address} has too many concurrent writers")

    async def _commit(
        self,
        snapshot: DocumentSnapshot[Any],
        before: _Entry | None,
        entry: _Entry,
        fields: Mapping[str, Any],
    ) -> bool:
        """The document and its version, both or neither."""
        batch = self._client.here.batch()
        if before is None:
            batch.create(snapshot.reference, msgspec.structs.asdict(entry))
        else:
            unchanged = self._client.here.write_option(last_update_time=snapshot.update_time)
            batch.update(snapshot.reference, msgspec.structs.asdict(entry), unchanged)
        document = self._reference(entry)
        if entry.is_deleted:
            batch.delete(document)
        else:
            gone = set(before.fields if before is not None else ()) - fields.keys()
            values = {**fields, **dict.fromkeys(gone, DELETE_FIELD)}
            paths = [FieldPath(name).to_api_repr() for name in values]
            batch.set(document, values, merge=paths or True)
        return await self._client.commit(batch) is not None

    def _reference(self, entry: _Entry) -> AsyncDocumentReference:
        return self._client.document(entry.collection, entry.id)

    async def _tidy(self) -> None:
        """Delete expired documents, and versions that no delayed writer can need any more."""
        now = self._clock.now()
        if self._tidied is not None and now - self._tidied < TIDY_INTERVAL:
            return
        self._tidied = now
        due = FieldFilter("due", "<=", now)
        query = self._client.here.collection(VERSIONS).where(filter=due)
        async for snapshot in self._client.stream(query):
            entry = _entry(snapshot)
            if entry is not None and entry.due is not None:
                await self._expire(snapshot, entry, entry.due + REMEMBERED, now)

    async def _expire(
        self, snapshot: DocumentSnapshot[Any], entry: _Entry, forget: float, now: float
    ) -> None:
        batch = self._client.here.batch()
        unchanged = self._client.here.write_option(last_update_time=snapshot.update_time)
        if not entry.is_deleted:
            batch.delete(self._reference(entry))
        if entry.is_deleted or forget <= now:
            batch.delete(snapshot.reference, unchanged)
        else:
            batch.update(snapshot.reference, {"is_deleted": True, "due": forget}, unchanged)
        await self._client.commit(batch)


def _entry(snapshot: DocumentSnapshot[Any]) -> _Entry | None:
    return msgspec.convert(snapshot.to_dict(), _Entry) if snapshot.exists else None


def place_of(key: str) -> tuple[str, str]:
    """The collection and the id of a key's document."""
    collection, slash, name = key.partition("/")
    if not all(key.split("/")):
        raise InvalidInput(
            f"document {key!r}: its key has an empty part; no '//' and no '/' at an end"
        )
    if collection.startswith(RESERVED):
        raise InvalidInput(f"document {key!r}: collections {RESERVED}… are holdfast's own")
    if not slash or collection == PLAIN:
        collection, name = PLAIN, key
    path = encoded_id(collection), encoded_id(name)
    if max(len(part.encode()) for part in path) > MAX_ID:
        raise InvalidInput(f"document {key!r:.80}: its key has more than {MAX_ID} bytes")
    return path


def fields_of(body: bytes) -> dict[str, Any]:
    """The fields of a document."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"body": body}
    return fields if _is_storable(fields) else {"body": body}


def _is_storable(value: Any) -> bool:
    """Firestore has integers of 64 bits, no empty names of fields, and no lists in lists."""
    if isinstance(value, dict):
        names = all(name and not name.startswith("__") for name in value)
        return names and all(_is_storable(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_storable(item) and not isinstance(item, list) for item in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63
