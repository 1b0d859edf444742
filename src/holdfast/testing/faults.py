"""A store, a bus and documents seen from one simulated process, with faults at their
boundaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.errors import StoreUnavailable, Transient
from holdfast.model.commands import Claim, Command, R, Stale
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Message
from holdfast.ports.store import Store
from holdfast.testing.world import Process, forever

KILL_BEFORE = "kill before"
KILL_AFTER = "kill after"
PAUSE_BEFORE = "pause before"
PAUSE_AFTER = "pause after"
LOSE_REQUEST = "lose request"
LOSE_REPLY = "lose reply"
DUPLICATE = "duplicate"

FAULTS = (KILL_BEFORE, KILL_AFTER, PAUSE_BEFORE, PAUSE_AFTER, LOSE_REQUEST, LOSE_REPLY, DUPLICATE)

Decide = Callable[[str, Sequence[Command]], str | None]
"""Asked at each boundary ("store", "blob", "bus" or "documents") which fault strikes there, if
any."""


class Boundary:
    """The line between a process and the outside, where faults strike."""

    def __init__(self, process: Process, decide: Decide, pause: float) -> None:
        self.process = process
        self.decide = decide
        self.pause = pause
        self.refused = 0
        """Writes that the fence refused: shows that the faults had an effect."""

    async def cross(
        self, kind: str, commands: Sequence[Command], call: Callable[[], Awaitable[Any]]
    ) -> Any:
        if not self.process.alive:
            await forever()
        fault = self.decide(kind, commands)
        await self._before(fault)
        answer = await call()
        if fault == DUPLICATE and not any(isinstance(command, Claim) for command in commands):
            answer = await call()
        await self._after(fault)
        return answer

    async def _before(self, fault: str | None) -> None:
        if fault == KILL_BEFORE:
            self.process.kill()
            await forever()
        if fault == PAUSE_BEFORE:
            await self._paused()
        if fault == LOSE_REQUEST:
            raise StoreUnavailable("simulated: the request was lost")

    async def _after(self, fault: str | None) -> None:
        if fault == KILL_AFTER:
            self.process.kill()
        if not self.process.alive:
            await forever()
        if fault == PAUSE_AFTER:
            await self._paused()
        if fault == LOSE_REPLY:
            raise StoreUnavailable("simulated: the answer was lost")

    async def _paused(self) -> None:
        """The whole process stops here and goes on from here, `pause` seconds later."""
        self.process.pause(self.pause)
        resumed = self.process.loop.create_future()
        self.process.loop.call_soon(lambda: resumed.done() or resumed.set_result(None))
        await resumed


class FaultyStore:
    """A store behind a boundary. Reads pass, unless the process is dead."""

    def __init__(self, store: Store, boundary: Boundary) -> None:
        self._store = store
        self._boundary = boundary
        self.features = store.features

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        """Others still use it."""

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        replies = await self._boundary.cross("store", commands, lambda: self._store.apply(commands))
        self._boundary.refused += sum(isinstance(reply, Stale) for reply in replies)
        return replies

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def guarded(*args: Any, **options: Any) -> Any:
            if not self._boundary.process.alive:
                await forever()
            return await method(*args, **options)

        return guarded


class FaultyBlobs:
    """A blob store behind a boundary."""

    def __init__(self, blobs: BlobStore, boundary: Boundary) -> None:
        self._blobs = blobs
        self._boundary = boundary

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        return await self._boundary.cross(
            "blob", (), lambda: self._blobs.put(key, data, durable=durable)
        )

    async def get(self, key: str) -> bytes | None:
        return await self._blobs.get(key)

    async def list(self, prefix: str) -> list[str]:
        return await self._blobs.list(prefix)

    async def delete(self, prefix: str) -> int:
        return await self._blobs.delete(prefix)


class CollectingBus:
    """A bus that keeps every copy of every message, behind a boundary."""

    def __init__(self, published: list[tuple[str, Message]], boundary: Boundary) -> None:
        self._published = published
        self._boundary = boundary

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def publish(self, topic: str, message: Message) -> None:
        async def keep() -> None:
            self._published.append((topic, message))

        try:
            await self._boundary.cross("bus", (), keep)
        except StoreUnavailable as error:
            raise Transient(str(error)) from error


class FaultyDocuments:
    """Documents behind a boundary. `seen` is called with what others read after each write."""

    def __init__(
        self,
        documents: MemoryDocuments,
        boundary: Boundary,
        observe: Callable[[str, bytes | None], None],
    ) -> None:
        self._documents = documents
        self._boundary = boundary
        self._observe = observe

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        return await self._write(
            key, lambda: self._documents.put(key, body, version=version, ttl=ttl)
        )

    async def delete(self, key: str, *, version: str) -> bool:
        return await self._write(key, lambda: self._documents.delete(key, version=version))

    async def close(self) -> None:
        """Others still use them."""

    async def _write(self, key: str, call: Callable[[], Awaitable[bool]]) -> bool:
        async def write() -> bool:
            is_written = await call()
            self._observe(key, self._documents.read(key))
            return is_written

        return await self._boundary.cross("documents", (), write)
