"""Group commit: commands of concurrent tasks leave together and are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy

from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.model.commands import Command, Reply
from holdfast.ports.store import Store

MAX_BATCH = 128
"""Half of what a busy worker has under way: while the store writes one half, the tasks of the other
go on."""

LARGEST = 512
"""What a batch takes when more waits than a busy worker has under way, as when a thousand runs are
submitted at once: two large transactions cost the store less than eight that are in one another's
way."""

GROUP = 32
"""So many are told together, or half of a large batch: all at once would keep step for ever, either
they work or the store does."""


Future = asyncio.Future[Reply] | None
"""Where the answer to a command goes; None if nobody waits for it."""


class Committer:
    """Collects commands while the store is busy with the batches before. Belongs to one event loop
    at a time.

    Batches leave in the order in which their commands were given.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commands: list[Command] = []
        self._futures: list[Future] = []
        self._flights: set[asyncio.Task[None]] = set()
        self._limit = store.features.batches_in_flight
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one it belongs to, until that is closed. Asking for the running one is a call to the
        kernel each time."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        return self._loop

    def send(self, command: Command) -> asyncio.Future[Reply]:
        """Apply a command; the future's result is the store's answer, once it is durable."""
        future = self.loop.create_future()
        self._commands.append(command)
        self._futures.append(future)
        if len(self._flights) < self._limit:
            self._take_off()
        return future

    def post(self, command: Command) -> None:
        """Apply a command sometime soon, without an answer: for progress and logs, which may be
        lost."""
        self._commands.append(command)
        self._futures.append(None)
        if len(self._flights) < self._limit:
            self._take_off()

    async def drain(self) -> None:
        """Wait until everything given so far was answered."""
        while self._flights:
            await asyncio.wait(self._flights)

    def _take_off(self) -> None:
        flight = self.loop.create_task(self._fly())
        self._flights.add(flight)
        flight.add_done_callback(
            self._flights.discard
        )  # also when it was cancelled before it began

    async def _fly(self) -> None:
        try:
            while self._commands:
                size = LARGEST if len(self._commands) > 3 * MAX_BATCH else MAX_BATCH
                commands, self._commands = self._commands[:size], self._commands[size:]
                futures, self._futures = self._futures[:size], self._futures[size:]
                try:
                    replies = await self._store.apply(commands)
                except Exception as error:
                    _tell_of_failure(futures, error)
                    continue
                if len(futures) > GROUP:
                    await _tell_in_halves(futures, replies)
                else:
                    _tell(futures, replies)
        finally:  # here and not only when the task is done: a command sent in between would wait for nobody
            self._flights.discard(asyncio.current_task(self.loop))  # type: ignore[arg-type]


async def _tell_in_halves(futures: Sequence[Future], replies: Sequence[Reply]) -> None:
    """What those who are told first send next is on its way while the others get going."""
    told, group = 0, max(GROUP, (len(futures) + 1) // 2)
    try:
        while told + group < len(futures):
            _tell(futures[told : told + group], replies[told : told + group])
            told += group
            await asyncio.sleep(0)
    finally:  # also when we are cancelled: they have waited, and it is written
        _tell(futures[told:], replies[told:])


def _tell(futures: Sequence[Future], replies: Sequence[Reply]) -> None:
    for future, reply in zip(futures, replies, strict=True):
        if future is not None and not future.done():
            future.set_result(reply)


def _tell_of_failure(futures: Sequence[Future], error: Exception) -> None:
    for future in futures:
        if future is not None and not future.done():
            future.set_exception(_as_ours(error))


def _as_ours(error: Exception) -> Exception:
    """A fresh exception for every waiter: a shared one would collect their tracebacks."""
    if isinstance(error, HoldfastError):
        return copy(error)
    return StoreUnavailable(f"the store failed unexpectedly: {type(error).__name__}: {error}")
