"""Group commit: commands of concurrent tasks are written together and answered together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from copy import copy
from typing import Any

from holdfast.errors import HoldfastError, StoreUnavailable, Unwritable
from holdfast.model.commands import Command, R
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.committer")

BATCH_SIZE = 128
"""Commands in a batch. Half of what a busy worker has under way: while the store writes one half,
the tasks of the other go on."""

LARGE_BATCH_SIZE = 512
"""Commands in a batch when more wait than a busy worker has under way, as when a thousand runs are
submitted at once: two large transactions cost the store less than eight that are in one another's
way."""

DISPATCH_SIZE = 32
"""Replies that are dispatched at once, or half of a large batch. With all at once, tasks and store
would take turns for ever: while one works the other waits."""

Future = asyncio.Future[Any] | None
"""Where the reply to a command goes; None if nobody waits for it."""


class Committer:
    """Collects commands while the store is busy with the batches before. Belongs to one event loop
    at a time.

    Batches are sent in the order in which their commands were given. Several are under way at once,
    and may overtake one another.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commands: list[Command[Any]] = []
        self._futures: list[Future] = []
        self._flushes: set[asyncio.Task[None]] = set()
        self._ordered: set[asyncio.Task[None]] = set()
        self._max_flushes = store.features.batches_in_flight
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one it belongs to, until that is closed. Asking for the running one would be a call
        to the kernel every time."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        return self._loop

    def send(self, command: Command[R]) -> asyncio.Future[R]:
        """Apply a command; the future's result is the store's reply, once it is durable. It raises
        Unwritable if no store can write the command."""
        future: asyncio.Future[R] = self.loop.create_future()
        self._commands.append(command)
        self._futures.append(future)
        if len(self._flushes) < self._max_flushes:
            self._start_flush()
        return future

    def post(self, command: Command[Any]) -> None:
        """Apply a command sometime soon, without a reply: for progress and logs, which may be
        lost."""
        self._commands.append(command)
        self._futures.append(None)
        if len(self._flushes) < self._max_flushes:
            self._start_flush()

    def send_in_order(self, commands: Sequence[Command[R]]) -> list[asyncio.Future[R]]:
        """As `send`, for commands that have to take effect in the order given: a batch of them is
        sent when the one before is durable. If one fails, so do those behind it."""
        futures: list[asyncio.Future[R]] = [self.loop.create_future() for _ in commands]
        write = self.loop.create_task(self._write_in_order(commands, futures))
        self._ordered.add(write)
        write.add_done_callback(self._ordered.discard)
        return futures

    async def drain(self) -> None:
        """Wait until every command that was given has its reply."""
        while under_way := self._flushes | self._ordered:
            await asyncio.wait(under_way)

    def _start_flush(self) -> None:
        flush = self.loop.create_task(self._flush())
        self._flushes.add(flush)
        flush.add_done_callback(self._flushes.discard)  # also when it was cancelled before it began

    async def _flush(self) -> None:
        """Write batch after batch until no command is left."""
        try:
            while self._commands:
                waiting = len(self._commands)
                size = LARGE_BATCH_SIZE if waiting > 3 * BATCH_SIZE else BATCH_SIZE
                commands, self._commands = self._commands[:size], self._commands[size:]
                futures, self._futures = self._futures[:size], self._futures[size:]
                try:
                    await self._write(commands, futures)
                except Exception as error:
                    _dispatch_error(futures, error)
        finally:
            # Here and not only when the task is done: nobody would flush a command that is sent in
            # between.
            self._flushes.discard(asyncio.current_task(self.loop))  # type: ignore[arg-type]

    async def _write_in_order(
        self, commands: Sequence[Command[Any]], futures: Sequence[Future]
    ) -> None:
        try:
            for start in range(0, len(commands), LARGE_BATCH_SIZE):
                part = slice(start, start + LARGE_BATCH_SIZE)
                await self._write(commands[part], futures[part])
        except Exception as error:
            _dispatch_error(futures, error)

    async def _write(self, commands: Sequence[Command[Any]], futures: Sequence[Future]) -> None:
        replies = await self._store.apply(commands)
        if len(futures) > DISPATCH_SIZE:
            await _dispatch_in_groups(futures, replies)
        else:
            _dispatch(futures, replies)


async def _dispatch_in_groups(futures: Sequence[Future], replies: Sequence[Any]) -> None:
    """What the tasks of one group send next is on its way before those of the next group go on."""
    done, size = 0, max(DISPATCH_SIZE, (len(futures) + 1) // 2)
    try:
        while done + size < len(futures):
            _dispatch(futures[done : done + size], replies[done : done + size])
            done += size
            await asyncio.sleep(0)
    finally:  # also when the flush is cancelled: the commands are written
        _dispatch(futures[done:], replies[done:])


def _dispatch(futures: Sequence[Future], replies: Sequence[Any]) -> None:
    for future, reply in zip(futures, replies, strict=True):
        if isinstance(reply, Unwritable):
            _dispatch_unwritable(future, reply)
        elif future is not None and not future.done():
            future.set_result(reply)


def _dispatch_unwritable(future: Future, error: Unwritable) -> None:
    if future is None:
        log.warning("a line of a log, or progress, is left out: %s", error)
    elif not future.done():
        future.set_exception(error)


def _dispatch_error(futures: Sequence[Future], error: Exception) -> None:
    for future in futures:
        if future is not None and not future.done():
            future.set_exception(_own_copy(error))


def _own_copy(error: Exception) -> Exception:
    """A fresh exception for every waiter: a shared one would collect their tracebacks."""
    if isinstance(error, HoldfastError):
        return copy(error)
    return StoreUnavailable(f"the store failed unexpectedly: {type(error).__name__}: {error}")
