"""Documents in this process's memory: for tests."""

from __future__ import annotations

import threading
from math import inf

from msgspec import Struct

from holdfast.model.clock import Clock, SystemClock
from holdfast.ports.documents import REMEMBERED


class _Entry(Struct, frozen=True):
    """A document, or the version of a deleted one, without a body."""

    version: str
    body: bytes | None
    expires: float | None


class MemoryDocuments:
    """`Documents` that are lost when the process ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: dict[str, _Entry] = {}
        self._guard = threading.Lock()

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        return self._write(key, version, bytes(body), ttl)

    async def delete(self, key: str, *, version: str) -> bool:
        return self._write(key, version, None, 0.0)

    async def close(self) -> None:
        """Nothing to let go of."""

    def read(self, key: str) -> bytes | None:
        """The document as others see it."""
        entry = self._entries.get(key)
        if entry is None or (entry.expires or inf) <= self._clock.monotonic():
            return None
        return entry.body

    def _write(self, key: str, version: str, body: bytes | None, ttl: float | None) -> bool:
        now = self._clock.monotonic()
        with self._guard:
            self._forget(now)
            before = self._entries.get(key)
            if before is not None and before.version >= version:
                return False
            self._entries[key] = _Entry(version, body, None if ttl is None else now + ttl)
            return True

    def _forget(self, now: float) -> None:
        for key, entry in list(self._entries.items()):
            if (entry.expires or inf) + REMEMBERED <= now:
                del self._entries[key]
