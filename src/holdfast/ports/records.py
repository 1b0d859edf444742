"""Records: small versioned documents beside the runs. What is no change of a run's state is kept
here, and so is written once for all stores: workers, cursors, leaders, keys, schedules."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from holdfast.model.replies import Changed, Stored


class Record(Struct, frozen=True):
    """A document, as text, and the version that a writer has to know to replace it. Versions are
    opaque and never used twice, even after a record was deleted. `updated` is the store's time."""

    key: str
    value: str
    version: str
    updated: float


class RecordPage(Struct, frozen=True):
    """Records in the order of their keys, and the store's time when they were read."""

    records: list[Record]
    now: float


MAX_KEY = 500
"""Bytes of a record's key."""
MAX_VALUE = 256 * 1024
"""Bytes of a record's value: what is larger belongs into the blob store."""


class Records(Protocol):
    """A map from keys to documents, changed by comparing versions.

    Who may call: any task of any event loop in any thread; calls may overlap.
    How long a call may block: until the store answers or its timeout passes.
    Who retries: the caller, never the adapter. A `put` that is repeated with the version of a call
    whose answer was lost may be refused by its own effect; `Changed.version` then is the version
    that the caller chose. Deleting again answers False.
    Errors: `StoreUnavailable`, `InvalidInput` for a key or value that is too large or no text.
    Not for high rates: a put is two round trips to a server."""

    async def get(self, key: str) -> RecordPage:
        """The record, or none."""
        ...

    async def put(
        self, key: str, value: str, *, expected: str | None = None, ttl: float | None = None
    ) -> Stored | Changed:
        """Write the record if its version is `expected`, None if there must be none. With a `ttl`,
        in seconds, it is gone then as if it had been deleted; every put begins anew."""
        ...

    async def delete(self, key: str, *, expected: str) -> bool:
        """Delete the record if its version is `expected`; whether it was."""
        ...

    async def list(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        """The records whose keys begin with a prefix, in the order of their keys (byte by byte),
        those behind `after`."""
        ...
