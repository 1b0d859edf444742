"""Group commit: commands of concurrent tasks leave together and are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.ports.commands import Command, Reply
from holdfast.ports.store import Store

MAX_BATCH = 1000


class Committer:
    """Collects commands while the store is busy with the batch before. Belongs to one event loop.

    Commands are applied in the order in which they were given, so what a task sends first is durable first.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: list[tuple[Command, asyncio.Future[Reply] | None]] = []
        self._flushing: asyncio.Task[None] | None = None

    def send(self, command: Command) -> asyncio.Future[Reply]:
        """Apply a command; the future's result is the store's answer, once it is durable."""
        future = asyncio.get_running_loop().create_future()
        self._pending.append((command, future))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return future

    def post(self, command: Command) -> None:
        """Apply a command sometime soon, without an answer: for progress and logs, which may be lost."""
        self._pending.append((command, None))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    async def drain(self) -> None:
        """Wait until everything given so far was answered."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
                await self._apply(batch)
        finally:
            self._flushing = None

    async def _apply(self, batch: Sequence[tuple[Command, asyncio.Future[Reply] | None]]) -> None:
        try:
            replies = await self._store.apply([command for command, _ in batch])
        except Exception as error:
            for _, future in batch:
                if future is not None and not future.done():
                    future.set_exception(_as_ours(error))
            return
        for (_, future), reply in zip(batch, replies, strict=True):
            if future is not None and not future.done():
                future.set_result(reply)


def _as_ours(error: Exception) -> Exception:
    """A fresh exception for every waiter: a shared one would collect their tracebacks."""
    if isinstance(error, HoldfastError):
        return type(error)(*error.args)
    return StoreUnavailable(f"the store failed unexpectedly: {type(error).__name__}: {error}")
