"""Large values move to the blob store by themselves; the store keeps a reference."""

from __future__ import annotations

import re
from hashlib import sha256

from holdfast.errors import ConfigurationError, Damaged
from holdfast.model.checkpoint import Checkpoint, checksum, input_fingerprint
from holdfast.model.run import Run
from holdfast.ports.blobs import BlobStore

REFERENCE = "@blob:"
_DIGEST = re.compile(r"/(?:([0-9a-f]{64})\.json|([0-9a-f]{32})-[^/]*)$")
"""The end of a key that `offload` or `put` made."""
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

    async def fetch(self, stored: str, expected: str | None = None) -> str:
        """The text behind what the store holds, which hashes to `expected` if that is given.
        Raises Damaged."""
        text = stored
        if is_reference(stored):
            data = await self.get(stored[len(REFERENCE) :])
            if data is None:
                raise Damaged("its value is missing from the blob store")
            text = data.decode()
        if expected is not None and checksum(text) != expected:
            raise Damaged("its checksum does not match: the stored value was changed or damaged")
        return text

    async def result(self, checkpoint: Checkpoint) -> str:
        """The text of a stored result. Raises Damaged."""
        return await self.fetch(checkpoint.value, checkpoint.checksum)

    async def input_of(self, run: Run) -> str:
        """The text of a run's input. Raises Damaged."""
        return await self.input(run.id, run.pipeline, run.input, run.fingerprint)

    async def input(self, run: str, pipeline: str, stored: str, fingerprint: str) -> str:
        """The text of an input that has to have this fingerprint. Raises Damaged."""
        try:
            text = await self.fetch(stored) if is_reference(stored) else stored
        except Damaged as error:
            raise Damaged(f"the input of run {run}: {error}; submit it again") from error
        if input_fingerprint(pipeline, text) != fingerprint:
            raise Damaged(
                f"the input of run {run} is not what was submitted: it was changed or damaged in "
                "the store; submit it again"
            )
        return text

    async def result_of(self, run: Run) -> str:
        """The text of a run's result. Raises Damaged."""
        return await self.run_result(run.id, run.result, run.result_checksum)

    async def run_result(self, run: str, stored: str | None, expected: str | None) -> str:
        """The text of a result that has to have this checksum. Raises Damaged."""
        try:
            return await self.fetch(stored or "null", expected)
        except Damaged as error:
            raise Damaged(
                f"the result of run {run}: {error}; run it again from its last step"
            ) from error

    async def put(self, folder: str, name: str, data: bytes) -> str:
        """Store an artifact; its key names who made it and what is in it."""
        key = f"{folder}/{sha256(data).hexdigest()[:32]}-{name}"
        await self._store().put(key, data)
        return key

    async def put_at(self, key: str, data: bytes) -> bool:
        """Create an object under a key of the caller's choice. False if it is there already."""
        return await self._store().put(key, data)

    async def get(self, key: str) -> bytes | None:
        """A blob, None if it is gone. Raises Damaged if it is not what its name says."""
        data = await self._store().get(key)
        if data is not None and not _is_whole(key, data):
            raise Damaged(f"blob {key!r} is not what its name says: it was changed or damaged")
        return data

    async def list(self, prefix: str) -> list[str]:
        """The keys of the blobs below a prefix; none without a blob store."""
        return [] if self._blobs is None else await self._blobs.list(prefix)

    async def forget(self, prefix: str) -> None:
        if self._blobs is not None:
            await self._blobs.delete(prefix)

    def _store(self) -> BlobStore:
        if self._blobs is None:
            raise ConfigurationError(
                f"no blob store is configured, where artifacts, files and values of more than "
                f"{self._limit} characters are kept: set HOLDFAST_BLOBS, for example to "
                "file:./holdfast-files"
            )
        return self._blobs


def _is_whole(key: str, data: bytes) -> bool:
    """Whether a blob is what was stored under its key, as far as that tells."""
    digest = _DIGEST.search(key)
    return digest is None or sha256(data).hexdigest().startswith(digest[1] or digest[2])
