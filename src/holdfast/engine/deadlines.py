"""Deadlines that cost nothing until they expire.

Thousands of short steps each have a deadline that is hardly ever reached. A timer per step would be
pushed on and taken off the loop's heap for nothing; here all deadlines of a loop share one timer,
set for the earliest."""

from __future__ import annotations

import asyncio
from math import inf
from types import TracebackType

PRECISION = 0.001


class Deadline:
    """`with deadlines.within(seconds) as limit:` cancels the body when time is up; then
    `limit.expired` is true and the block ends with TimeoutError, as with `asyncio.timeout`."""

    __slots__ = ("_cancelling", "_deadlines", "_task", "expired", "when")

    def __init__(
        self, deadlines: Deadlines, loop: asyncio.AbstractEventLoop, seconds: float
    ) -> None:
        self._deadlines = deadlines
        # Without the loop this would ask the kernel for our process id.
        self._task = asyncio.current_task(loop)
        self._cancelling = self._task.cancelling() if self._task else 0
        self.when = loop.time() + seconds
        self.expired = False

    def __enter__(self) -> Deadline:
        self._deadlines.open[self] = None
        if self.when < self._deadlines.next:
            self._deadlines.set_timer(self.when)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.open.pop(self, None)
        if not self.expired or self._task is None:
            return
        # A cancellation from elsewhere, at the same moment, is not ours to turn into a timeout.
        if (
            self._task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, asyncio.CancelledError)
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        self.expired = True
        if self._task is not None:
            self._task.cancel()


class Deadlines:
    """All deadlines of one event loop: the one that runs when the first is made, until that is
    closed."""

    def __init__(self) -> None:
        self.open: dict[Deadline, None] = {}
        self.next = inf
        """For when the timer is set."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Another one when an app is opened again: what belonged to the old one is forgotten."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self.open, self.next, self._timer = {}, inf, None
        return self._loop

    def within(self, seconds: float) -> Deadline:
        return Deadline(self, self.loop, seconds)

    def set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.next = when
        self._timer = self.loop.call_at(when, self._expire)

    def _expire(self) -> None:
        """Cancel what is over, and set the timer for the next; most of those it was set for are
        long gone."""
        self._timer, self.next = None, inf
        now = self.loop.time() + PRECISION
        for deadline in [deadline for deadline in self.open if deadline.when <= now]:
            del self.open[deadline]
            deadline.expire()
        if self.open:
            self.set_timer(min(deadline.when for deadline in self.open))
