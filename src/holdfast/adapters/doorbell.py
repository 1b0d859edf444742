"""A doorbell that is heard in every event loop of the process, whichever thread rings it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from holdfast.ports import commands as c

LOUD = frozenset(
    (c.Cancel, c.Discard, c.ForceRelease, c.PauseRun, c.ReleaseLock, c.Resume, c.Settle, c.Submit, c.Sweep)
)
"""Commands that may give somebody something to do. One that only asks must not ring: two who wait for one lock would
wake each other for ever."""


def leaves_work(commands: Sequence[c.Command], replies: Sequence[c.Reply]) -> bool:
    """Whether somebody here may have something to do after a batch. Not if all that was submitted was claimed in it:
    whoever did so is at work already, and looking for more would only be in the way of its first step."""
    if len(commands) == 1:
        return type(commands[0]) in LOUD
    loud = [command for command in commands if type(command) in LOUD]
    submitted = [command.id for command in loud if type(command) is c.Submit]
    if len(submitted) < len(loud):
        return True
    claims = [reply for command, reply in zip(commands, replies, strict=True) if type(command) is c.Claim]
    return not {run.run for reply in claims for run in reply}.issuperset(submitted)


Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Doorbell:
    """Rings are numbered. Who waits says which one was heard last, so none between two waits is lost."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._rings = 0
        self._waiting: dict[Waiter, None] = {}  # in order of arrival

    def ring(self) -> None:
        with self._guard:
            self._rings += 1
            waiting = list(self._waiting)
        here = asyncio._get_running_loop()  # None in a thread that has none
        for loop, event in waiting:
            if loop is here:
                event.set()
                continue
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # that loop was closed while somebody waited in it: nobody is left to hear the bell

    async def wait(self, since: int, timeout: float) -> int:
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        if self._sit_down(waiter, since):
            try:
                async with asyncio.timeout(timeout):  # unlike wait_for, it never swallows a cancellation
                    await waiter[1].wait()
            except TimeoutError:
                pass
            finally:
                self._get_up(waiter)
        return self._rings

    def _sit_down(self, waiter: Waiter, since: int) -> bool:
        """Whether there is anything to wait for: seen and seated in one act, or a ring slips through."""
        with self._guard:
            if self._rings > since:
                return False
            self._waiting[waiter] = None
            return True

    def _get_up(self, waiter: Waiter) -> None:
        with self._guard:
            self._waiting.pop(waiter, None)
