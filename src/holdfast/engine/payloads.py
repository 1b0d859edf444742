"""Large values move to the blob store by themselves; the store keeps a reference."""

from __future__ import annotations

from hashlib import sha256

from holdfast.errors import ConfigurationError
from holdfast.ports.blobs import BlobStore

REFERENCE = "@blob:"
INLINE_LIMIT = 32 * 1024
"""Above this many characters of JSON, a value is stored as a blob."""


def is_reference(stored: str) -> bool:
    return stored.startswith(REFERENCE)


class Payloads:
    """Puts text where it belongs and finds it again. JSON never begins with `@`, so a reference is
    unmistakable."""

    def __init__(self, blobs: BlobStore | None, inline_limit: int = INLINE_LIMIT) -> None:
        self._blobs = blobs
        self._limit = inline_limit

    def fits_inline(self, text: str) -> bool:
        return len(text) <= self._limit

    async def offload(self, text: str, folder: str) -> str:
        """What to put into the store for this text. `folder` is tenant/run/step/epoch: who made
        it."""
        if len(text) <= self._limit:
            return text
        data = text.encode()
        key = f"{folder}/{sha256(data).hexdigest()}.json"
        await self._store().put(key, data)
        return REFERENCE + key

    async def fetch(self, stored: str) -> str | None:
        """The text behind what the store holds; None if its blob is gone."""
        if not is_reference(stored):
            return stored
        data = await self._store().get(stored[len(REFERENCE) :])
        return None if data is None else data.decode()

    async def put(self, folder: str, name: str, data: bytes) -> str:
        """Store an artifact; its key names who made it and what is in it."""
        key = f"{folder}/{sha256(data).hexdigest()[:32]}-{name}"
        await self._store().put(key, data)
        return key

    async def put_at(self, key: str, data: bytes) -> bool:
        """Create an object under a key of the caller's choice. False if it is there already."""
        return await self._store().put(key, data)

    async def get(self, key: str) -> bytes | None:
        return await self._store().get(key)

    async def forget(self, prefix: str) -> None:
        if self._blobs is not None:
            await self._blobs.delete(prefix)

    def _store(self) -> BlobStore:
        if self._blobs is None:
            raise ConfigurationError(
                f"a value is larger than {self._limit} characters and no blob store is configured: "
                "set HOLDFAST_BLOBS, for example to file:./holdfast-files"
            )
        return self._blobs
