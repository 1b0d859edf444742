"""Blobs as objects of a bucket: created with a precondition, so that of two writers one creates the
object and nobody ever overwrites one."""

from __future__ import annotations

import asyncio
import builtins

import obstore

from holdfast.adapters.buckets import address as addresses
from holdfast.adapters.buckets.errors import MISSING, refuse_missing_bucket, translated
from holdfast.adapters.object_keys import blob_folder, blob_segments
from holdfast.errors import StoreUnavailable

RETRIES = 3
"""How often the client repeats what the service refuses for the moment: calls are idempotent, and a
step should not be executed again because of one answer of 503."""
DELETED_AT_ONCE = 20


class BucketBlobs:
    """A `BlobStore` in a bucket, shared by any number of processes. What the service has
    acknowledged is durable, whatever `durable` says."""

    def __init__(self, url: str) -> None:
        self.address = addresses.parse(url)
        self._bucket = addresses.open_store(self.address, retries=RETRIES)

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        name = "/".join(blob_segments(key))
        with translated(self.address, f"writing {key!r}", StoreUnavailable):
            try:
                await obstore.put_async(
                    self._bucket, name, data, mode="create", use_multipart=False
                )
            except obstore.exceptions.AlreadyExistsError:
                return False
            return True

    async def get(self, key: str) -> bytes | None:
        name = "/".join(blob_segments(key))
        with translated(self.address, f"reading {key!r}", StoreUnavailable):
            try:
                result = await obstore.get_async(self._bucket, name)
                return bytes(await result.bytes_async())
            except MISSING as error:
                return refuse_missing_bucket(error, None)

    async def list(self, prefix: str) -> builtins.list[str]:
        folder = "/".join(blob_folder(prefix))
        with translated(self.address, f"listing {prefix!r}", StoreUnavailable):
            stream = obstore.list(self._bucket, folder)
            return sorted([entry["path"] async for page in stream for entry in page])

    async def delete(self, prefix: str) -> int:
        names = await self.list(prefix)
        with translated(self.address, f"deleting below {prefix!r}", StoreUnavailable):
            for start in range(0, len(names), DELETED_AT_ONCE):
                batch = names[start : start + DELETED_AT_ONCE]
                await asyncio.gather(*[self._remove(name) for name in batch])
        return len(names)

    async def _remove(self, name: str) -> None:
        try:
            await obstore.delete_async(self._bucket, name)
        except MISSING:
            pass  # another process deletes the same objects
