"""A doorbell that is heard in every event loop of the process, whichever thread rings it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from holdfast.model import commands as c

LOUD = frozenset(
    (c.Cancel, c.Discard, c.ForceRelease, c.PauseRun, c.ReleaseLock, c.Resume, c.Sweep)
)
"""Commands that may give somebody something to do, whatever else is in their batch; so may Settle
and Submit. One that only asks must not ring: two who wait for one lock would wake each other for
ever."""


def what_it_leaves(
    commands: Sequence[c.Command], replies: Sequence[c.Reply]
) -> Literal["work", "news"] | None:
    """What somebody here may be waiting for after a batch: work in a parallel lane, or only news,
    if all it did was to let runs succeed. Looking for more work then would only be in the way of
    what comes next."""
    if len(commands) == 1 and type(commands[0]) is c.Submit:
        return "work"
    kinds = set(map(type, commands))
    if not LOUD.isdisjoint(kinds):
        return "work"
    settled = (
        [command for command in commands if type(command) is c.Settle] if c.Settle in kinds else []
    )
    if any(settle.outcome != "succeeded" for settle in settled):
        return "work"
    if c.Submit in kinds and not _all_claimed(commands, replies):
        return "work"
    return "news" if settled else None


def _all_claimed(commands: Sequence[c.Command], replies: Sequence[c.Reply]) -> bool:
    """Whether all that was submitted was claimed in the same batch: then whoever did so is at work
    already."""
    claims = [
        reply for command, reply in zip(commands, replies, strict=True) if type(command) is c.Claim
    ]
    claimed = {run.run for reply in claims for run in reply}
    return all(command.id in claimed for command in commands if type(command) is c.Submit)


class Waiter(Struct, eq=False):
    """Somebody who waits, for any change or only for work."""

    loop: asyncio.AbstractEventLoop
    event: asyncio.Event
    work: bool


class Doorbell:
    """Rings are numbered. Who waits says which one was heard last, so none between two waits is
    lost."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._rings = 0
        self._rings_for_work = 0  # the number of the last one
        self._waiting: dict[Waiter, None] = {}  # in order of arrival

    def ring(self, *, work: bool = True) -> None:
        with self._guard:
            self._rings += 1
            if work:
                self._rings_for_work = self._rings
            waiting = [waiter for waiter in self._waiting if work or not waiter.work]
        here = asyncio._get_running_loop()  # None in a thread that has none
        for waiter in waiting:
            if waiter.loop is here:
                waiter.event.set()
                continue
            try:
                waiter.loop.call_soon_threadsafe(waiter.event.set)
            except RuntimeError:
                # that loop was closed while somebody waited in it: nobody is left to hear the bell
                pass

    async def wait(self, since: int, timeout: float, *, work: bool = False) -> int:
        waiter = Waiter(asyncio.get_running_loop(), asyncio.Event(), work)
        if self._sit_down(waiter, since):
            try:
                async with asyncio.timeout(
                    timeout
                ):  # unlike wait_for, it never swallows a cancellation
                    await waiter.event.wait()
            except TimeoutError:
                pass
            finally:
                self._get_up(waiter)
        return self._rings

    def _sit_down(self, waiter: Waiter, since: int) -> bool:
        """Whether there is anything to wait for: seen and seated in one act, or a ring slips
        through."""
        with self._guard:
            if (self._rings_for_work if waiter.work else self._rings) > since:
                return False
            self._waiting[waiter] = None
            return True

    def _get_up(self, waiter: Waiter) -> None:
        with self._guard:
            self._waiting.pop(waiter, None)
