"""Wakes those of a process who wait for a change in the store, in every event loop, from any
thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from holdfast.model.commands import Claim, Command, Submit, Wake


def wake_after(commands: Sequence[Command[Any]], replies: Sequence[Any]) -> Wake:
    """Whom a batch wakes. Runs that were claimed in the batch that submitted them wake nobody:
    whoever claimed them is at work already."""
    if len(commands) == 1:
        return commands[0].wakes(replies[0])
    claimed = {
        run.run
        for command, reply in zip(commands, replies, strict=True)
        if type(command) is Claim
        for run in reply
    }
    wake = Wake.NOBODY
    for command, reply in zip(commands, replies, strict=True):
        if not (claimed and type(command) is Submit and command.id in claimed):
            wake = max(wake, command.wakes(reply))
    return wake


def announcement(name: str, wake: Wake) -> str:
    """The notification that a store sends to others on its server: its own name, and whom it
    wakes."""
    return f"{name} {wake.name.lower()}"


def announced(message: str) -> tuple[str, Wake]:
    """The sender of a notification, and whom it wakes: everybody if that can't be known."""
    name, _, wake = message.partition(" ")
    return name, Wake.__members__.get(wake.upper(), Wake.HOLDERS)


class Waiter(Struct, eq=False):
    """A task that waits for changes that wake at least these."""

    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]
    wake: Wake

    def wake_up(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class Notifier:
    """Notifications are numbered. A waiter says which one it saw last, so none between two waits
    is lost."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._last = 0
        self._last_for: dict[int, int] = dict.fromkeys(Wake, 0)
        """The last notification that woke each of them."""
        self._waiters: dict[Waiter, None] = {}  # in order of arrival

    def notify(self, wake: Wake = Wake.HOLDERS) -> None:
        if wake is Wake.NOBODY:
            return
        with self._guard:
            self._last += 1
            for level in range(Wake.WAITERS, wake + 1):
                self._last_for[level] = self._last
            woken = [waiter for waiter in self._waiters if waiter.wake <= wake]
        running = asyncio._get_running_loop()  # None in a thread that has none
        for waiter in woken:
            if waiter.loop is running:
                waiter.wake_up()
                continue
            try:
                waiter.loop.call_soon_threadsafe(waiter.wake_up)
            except RuntimeError:
                pass  # that loop was closed while somebody waited in it

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        loop = asyncio.get_running_loop()
        waiter = Waiter(loop, loop.create_future(), wake)
        if self._enqueue(waiter, since):
            timer = loop.call_later(timeout, waiter.wake_up)
            try:
                await waiter.woken
            finally:
                timer.cancel()
                with self._guard:
                    self._waiters.pop(waiter, None)
        return self._last

    def _enqueue(self, waiter: Waiter, since: int) -> bool:
        """Whether there is anything to wait for. Checking and enqueueing are one atomic step, or a
        notification could be lost in between."""
        with self._guard:
            if self._last_for[waiter.wake] > since:
                return False
            self._waiters[waiter] = None
            return True
