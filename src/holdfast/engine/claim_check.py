"""Bodies that are too large for a bus go through the blob store; the message carries a reference
(`ce-dataref`), which is followed on arrival.

The name of such a blob is the digest of its bytes, so that every copy of a message carries the same
reference. Only references into the folder of these blobs are followed, and only to bytes that have
that digest: a message can't make a worker read anything else."""

from __future__ import annotations

import re
from hashlib import sha256

from msgspec.structs import replace

from holdfast.errors import Damaged, InvalidInput
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Message, Publisher

REFERENCE = "ce-dataref"
FOLDER = "messages"
_KEY = re.compile(rf"{FOLDER}/([0-9a-f]{{64}})")


class ClaimChecks:
    """`store_url` is the URL of the blob store, by which others find a body."""

    def __init__(self, blobs: BlobStore | None, store_url: str = "blobs:") -> None:
        self._blobs = blobs
        self._prefix = store_url if store_url.endswith((":", "/")) else f"{store_url}/"

    async def check_in(self, message: Message) -> Message:
        """The message with a reference in place of its body; unchanged without a blob store."""
        if self._blobs is None:
            return message
        key = f"{FOLDER}/{sha256(message.body).hexdigest()}"
        await self._blobs.put(key, message.body)
        attributes = {**message.attributes, REFERENCE: f"{self._prefix}{key}"}
        return replace(message, body=b"", attributes=attributes)

    async def body_of(self, body: bytes, attributes: dict[str, str]) -> bytes:
        """The body of a message that arrived. Raises InvalidInput for a reference that is not
        followed, and Damaged."""
        reference = attributes.get(REFERENCE)
        if reference is None or body:
            return body
        key = _KEY.fullmatch(reference.removeprefix(self._prefix))
        if self._blobs is None or key is None or not reference.startswith(self._prefix):
            raise InvalidInput(
                f"{REFERENCE} names {reference[:200]!r}, which is no message in the blob store of "
                "this worker: set `blobs` to that of the publisher"
            )
        data = await self._blobs.get(key[0])
        if data is None or sha256(data).hexdigest() != key[1]:
            state = "is missing" if data is None else "was changed"
            raise Damaged(f"the body at {reference} {state}: publish the message again")
        return data


class ClaimCheckPublisher:
    """Publishes small messages as they are, and the bodies of large ones by reference."""

    def __init__(self, publisher: Publisher, checks: ClaimChecks) -> None:
        self._publisher = publisher
        self._checks = checks

    async def publish(self, topic: str, message: Message) -> None:
        limit = getattr(self._publisher, "max_body", None)
        if limit is not None and len(message.body) > limit:
            message = await self._checks.check_in(message)
        await self._publisher.publish(topic, message)
