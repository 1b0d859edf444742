"""How many bytes of inputs a worker has in memory at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class InputRoom:
    """Inputs are let in as long as they fit; one is always let in, or a large one would wait for
    ever. Those that do not fit wait in order, their runs already leased.

    How large an input in the blob store is turns out when it is read: so these are read one after
    the other, and at most one of them is in memory beyond the limit."""

    def __init__(self, max_bytes: int, on_room: Callable[[], None]) -> None:
        self._max_bytes = max_bytes
        self._on_room = on_room
        """Called whenever it may be full no longer."""
        self._turn = asyncio.Lock()
        self._left = asyncio.Event()
        self._waits = False
        self._inputs = 0
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether another one would have to wait."""
        return self._waits or (self._inputs > 0 and self.bytes >= self._max_bytes)

    async def enter(self, text: str) -> int:
        """Let a text in that is in memory anyway, as soon as it fits. Its size, for `leave`."""
        size = _size(text)
        if self._turn.locked() or not self._fits(size):
            async with self._turn:
                await self._wait_for(size)
        return self._add(size)

    async def load(self, read: Callable[[], Awaitable[str]]) -> tuple[str, int]:
        """Read a text, and let it in as soon as it fits."""
        async with self._turn:
            text = await read()
            size = _size(text)
            await self._wait_for(size)
            return text, self._add(size)

    def leave(self, size: int) -> None:
        self._inputs -= 1
        self.bytes -= size
        self._left.set()
        self._on_room()

    async def _wait_for(self, size: int) -> None:
        self._waits = True
        try:
            while not self._fits(size):
                self._left.clear()
                await self._left.wait()
        finally:
            self._waits = False
            self._on_room()

    def _fits(self, size: int) -> bool:
        return not self._inputs or self.bytes + size <= self._max_bytes

    def _add(self, size: int) -> int:
        self._inputs += 1
        self.bytes += size
        return size


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
