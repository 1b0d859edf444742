"""Documents: what other systems read, each written only over an older version of itself."""

from __future__ import annotations

from typing import Protocol

REMEMBERED = 86_400.0
"""Seconds for which the version of a document that is gone is remembered, at least."""


class Documents(Protocol):
    """A map from keys to documents that others read as they are: a plain key, object or file.

    Versions are texts of one length that compare byte by byte; the comparison is part of the write,
    in the adapter's own atomic step (a script, a precondition, a lock), never a read before it. A
    document that is deleted or has expired leaves its version behind for `REMEMBERED` seconds, so
    that nobody who was held up brings an older one back.

    Who may call: any task of any event loop; calls may overlap, also for one key.
    How long a call may block: until the other side answers or the adapter's timeout passes.
    Who retries: the caller, never the adapter. Repeating a call changes nothing: it is answered
    False. Errors: `Transient`; `InvalidInput` for a key that the adapter can't have. There is no
    `open`: the first call connects, so that a server that is away keeps nobody from starting."""

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        """Write the document if its version is higher than the stored one; whether it was. With a
        `ttl`, in seconds, it is gone then; adapters may remove it up to a minute late."""
        ...

    async def delete(self, key: str, *, version: str) -> bool:
        """Remove the document if the version is higher than the stored one; whether it was."""
        ...

    async def close(self) -> None:
        """Let go of connections. A later call makes new ones."""
        ...
