"""Documents as objects of a bucket: the object at `<prefix>/<key>` is the document and nothing
else. Its version is in the object's metadata, and every write names the generation (on S3: the
ETag) of the object that it replaces, or that there is none.

An object store can't delete under a condition, nor remember what it has deleted. So a delete first
leaves a *mark* with its version, `.holdfast/marks/<key>`, and then removes the document; whoever
writes a document that has a mark raises the mark first, and looks at it once more afterwards:

- A delayed writer finds a mark of a later delete, and removes what it has just written.
- A delayed delete finds that the mark was raised in the meantime. It may have removed a
  later document, and raises `Transient`: whoever called it brings the documents up to date again.
- If either of them dies in between, the document or its mark shows it, and the next call that
  brings the same version repairs it.

What expires is listed under `.holdfast/due/<time>/<key>`, and removed by whoever writes next, at
most once a minute.

On S3 the ETag is a digest of the bytes. A delayed writer can't tell that a document was changed and
then changed back to the very same bytes, and writes its own older version."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import obstore
from msgspec import Struct

from holdfast.adapters.buckets import address as addresses
from holdfast.adapters.buckets.errors import (
    CONFLICTS,
    MISSING,
    refuse_missing_bucket,
    translated,
)
from holdfast.errors import InvalidInput, Transient
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.ids import new_token
from holdfast.ports.documents import REMEMBERED

OWN = ".holdfast"
"""The folder for internal objects."""
VERSION, EXPIRES = "holdfast-version", "holdfast-expires"
MAX_NAME = 900
"""Bytes of an object's name, with room for the folder of marks: a service takes 1024."""
TIDY_INTERVAL = 60.0
"""Between two looks for expired documents, in seconds."""
TRIES = 50
"""How often a write may lose against a concurrent one."""


class DeletionMark(Struct, frozen=True):
    """That a document was deleted, or written again since."""

    version: str
    is_deleted: bool
    forget: float
    """When no delayed writer can need it any more, in seconds since 1970."""
    token: str = ""
    """Makes the bytes of every mark different."""


class StoredObject(Struct, frozen=True):
    """An object as it was read; `mode` is the condition that it is still so."""

    mode: Any = "create"
    version: str = ""
    expires: float | None = None
    mark: DeletionMark | None = None

    @property
    def exists(self) -> bool:
        return self.mode != "create"


class BucketDocuments:
    """`Documents` in a bucket, shared by any number of processes."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.address = addresses.parse(url)
        self._bucket = addresses.open_store(self.address)
        self._clock = clock or SystemClock()
        self._tidied: float | None = None

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        name = object_name(key)
        with translated(self.address, f"writing document {key!r}", Transient):
            await self._tidy()
            for _ in range(TRIES):
                document, mark = await self._look(name)
                if not _may_write(document, mark, version):
                    return False
                if await self._write(name, document, mark, body, version, ttl):
                    return True
        raise Transient(f"document {key!r} in {self.address} has too many concurrent writers")

    async def delete(self, key: str, *, version: str) -> bool:
        name = object_name(key)
        with translated(self.address, f"deleting document {key!r}", Transient):
            await self._tidy()
            for _ in range(TRIES):
                document, mark = await self._look(name)
                if not _may_delete(document, mark, version):
                    return False
                if await self._mark(name, mark, version, is_deleted=True):
                    await self._remove(name, document, version)
                    return True
        raise Transient(f"document {key!r} in {self.address} has too many concurrent writers")

    async def close(self) -> None:
        """Nothing to let go of: the client keeps no session."""

    # --- writing ----------------------------------------------------------------------------------

    async def _write(
        self,
        name: str,
        document: StoredObject,
        mark: StoredObject,
        body: bytes,
        version: str,
        ttl: float | None,
    ) -> bool:
        """False if a concurrent writer was faster."""
        if mark.exists and not await self._mark(name, mark, version, is_deleted=False):
            return False
        attributes = {VERSION: version, "Content-Type": _content_type(name)}
        if ttl is not None:
            expires = self._clock.now() + ttl
            attributes[EXPIRES] = repr(expires)
            await self._note_due(name, expires)
        if not await self._put(name, body, document.mode, attributes):
            return False
        await self._undo_if_deleted(name, version)
        return True

    async def _undo_if_deleted(self, name: str, version: str) -> None:
        mark = await self._read_mark(name)
        if mark.mark is not None and mark.mark.is_deleted and mark.version > version:
            await self._delete(name)

    async def _mark(self, name: str, mark: StoredObject, version: str, *, is_deleted: bool) -> bool:
        """Raise the mark of a document, if it is as it was read."""
        if mark.version == version:
            return True
        forget = self._clock.now() + REMEMBERED
        await self._note_due(name, forget)
        raised = msgspec.json.encode(DeletionMark(version, is_deleted, forget, new_token()))
        return await self._put(_mark_name(name), raised, mark.mode, {})

    async def _remove(self, name: str, document: StoredObject, version: str) -> None:
        if not document.exists:
            return
        await self._delete(name)
        document, mark = await self._look(name)
        if mark.version > version and not document.exists:
            raise Transient(
                f"document {unquote(name)!r} in {self.address} was written again while it was "
                "being removed; bring it up to date once more"
            )

    async def _put(self, name: str, body: bytes, mode: Any, attributes: Any) -> bool:
        try:
            await obstore.put_async(
                self._bucket, name, body, mode=mode, attributes=attributes, use_multipart=False
            )
        except CONFLICTS:
            return False
        except MISSING as error:  # what was to be replaced
            return refuse_missing_bucket(error, False)
        return True

    async def _delete(self, name: str) -> None:
        try:
            await obstore.delete_async(self._bucket, name)
        except MISSING as error:
            refuse_missing_bucket(error, None)

    # --- reading ----------------------------------------------------------------------------------

    async def _look(self, name: str) -> tuple[StoredObject, StoredObject]:
        """The document and its mark."""
        document, mark = await asyncio.gather(self._head(name), self._read_mark(name))
        return document, mark

    async def _head(self, name: str) -> StoredObject:
        try:
            result = await obstore.get_async(self._bucket, name, options={"head": True})
        except MISSING as error:
            return refuse_missing_bucket(error, StoredObject())
        attributes: Any = result.attributes
        expires = attributes.get(EXPIRES)
        version = attributes.get(VERSION, "")
        return StoredObject(
            _mode(result.meta), version, None if expires is None else float(expires)
        )

    async def _read_mark(self, name: str) -> StoredObject:
        try:
            result = await obstore.get_async(self._bucket, _mark_name(name))
            mark = msgspec.json.decode(bytes(await result.bytes_async()), type=DeletionMark)
        except MISSING as error:
            return refuse_missing_bucket(error, StoredObject())
        return StoredObject(_mode(result.meta), mark.version, mark=mark)

    # --- what has expired -------------------------------------------------------------------------

    async def _note_due(self, name: str, moment: float) -> None:
        await self._put(f"{OWN}/due/{round(moment):012d}/{name}", b"", "overwrite", {})

    async def _tidy(self) -> None:
        """Remove what has expired, and marks that no delayed writer can need any more."""
        now = self._clock.now()
        if self._tidied is not None and now - self._tidied < TIDY_INTERVAL:
            return
        self._tidied = now
        async for page in obstore.list(self._bucket, f"{OWN}/due"):
            for entry in page:
                _, _, moment, name = entry["path"].split("/", 3)
                if int(moment) > now + 1:
                    return
                await self._expire(name, now)
                await self._delete(entry["path"])

    async def _expire(self, name: str, now: float) -> None:
        document, mark = await self._look(name)
        if document.expires is not None and document.expires <= now:
            if await self._mark(name, mark, document.version, is_deleted=True):
                await self._delete(name)
        elif mark.mark is not None and mark.mark.forget <= now:
            await self._delete(_mark_name(name))


def _may_write(document: StoredObject, mark: StoredObject, version: str) -> bool:
    """Whether a version may be written: not over the same or a higher one, but again if the mark
    was raised and the document is missing."""
    if max(document.version, mark.version) > version or document.version == version:
        return False
    return mark.mark is None or mark.version < version or not mark.mark.is_deleted


def _may_delete(document: StoredObject, mark: StoredObject, version: str) -> bool:
    """Whether a version may be deleted: not the same or a higher one, but again if there is a mark
    and the document is still there."""
    if max(document.version, mark.version) > version or document.version == version:
        return False
    if mark.mark is None or mark.version < version:
        return True
    return mark.mark.is_deleted and document.exists


def _mode(meta: Any) -> Any:
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def _mark_name(name: str) -> str:
    return f"{OWN}/marks/{name}"


def object_name(key: str) -> str:
    """The name of a document's object: its key, but for what the service or its client can't
    have."""
    parts = key.split("/")
    if not all(parts):
        raise InvalidInput(
            f"document {key!r}: its key has an empty part; no '//' and no '/' at an end"
        )
    name = "/".join(_segment(part) for part in parts)
    if len(name.encode()) > MAX_NAME:
        raise InvalidInput(f"document {key!r:.80}: its key has more than {MAX_NAME} bytes")
    return name


def _segment(part: str) -> str:
    """`%`, control characters, and reserved names are encoded."""
    safe = "".join(quote(c) if c == "%" or ord(c) < 32 or ord(c) == 127 else c for c in part)
    return "%2E" + safe[1:] if part in (".", "..", OWN, ".well-known") else safe


def _content_type(name: str) -> str:
    return "application/json" if name.endswith(".json") else "application/octet-stream"
