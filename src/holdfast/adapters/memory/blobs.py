"""Blobs in this process's memory: for tests, and for runs whose loss does not matter."""

from __future__ import annotations

import builtins
import threading


class MemoryBlobs:
    """A `BlobStore` that is empty again when the process ends."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._guard = threading.Lock()

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        with self._guard:
            if key in self._objects:
                return False
            self._objects[key] = bytes(data)
            return True

    async def get(self, key: str) -> bytes | None:
        with self._guard:
            return self._objects.get(key)

    async def list(self, prefix: str) -> builtins.list[str]:
        with self._guard:
            return sorted(key for key in self._objects if key.startswith(prefix))

    async def delete(self, prefix: str) -> int:
        with self._guard:
            below = [key for key in self._objects if key.startswith(prefix)]
            for key in below:
                del self._objects[key]
            return len(below)
