"""How fast a model is asked: one queue for all its callers.

**In flight.** At most `in_flight` calls are under way. The window shrinks to half when the vendor
says "slow down" and grows by one for every window of calls that went well, as TCP does: without any
figure from the user, the rate settles near what the vendor allows.

**Per minute.** Requests and tokens are spread evenly, not spent at the start of each minute. A
request may go out a little early (a tenth of a second's worth; ten seconds' worth of tokens), so
that a late timer costs no rate. Tokens are estimated before a call and corrected after it.

**Cool-down.** "Slow down" stops all callers, not only the one who heard it, for as long as the
vendor asks, or for 1, 2, 4 … 30 seconds if it does not say. Afterwards the calls of one window
start one by one over the time that a call takes. Several refusals in one window of calls are one
signal: only the first shrinks the window. While no call succeeds, the window stays as it is: that
is an outage, and says nothing about the limit.

**Order.** First come, first served. A rate-limited call keeps its position: it goes first
after the cool-down, so that nobody is refused again and again.

**Long waits.** No call waits for a cool-down of more than a minute while its run holds a lease:
`Transient` is raised with the time that is left, and the engine gives the run back to the queue.

**Across processes.** With an `Allowance` a call also waits until all processes together may send
it. It waits with its turn: who comes later in this process waits behind it.

Time is the event loop's, so that tests decide it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from holdfast.errors import Transient
from holdfast.ports.allowance import Allowance

LONGEST_WAIT = 60.0
LEAST_PAUSE = 0.1
"""Seconds: vendors ask for the milliseconds until one call fits, and after those the next one is
refused."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
REQUESTS_EARLY = 0.1
TOKENS_EARLY = 10.0
USUAL_CALL = 1.0
"""Seconds a call is thought to take before one has been seen."""


class Pacer:
    """Lets callers in when it is their turn."""

    def __init__(
        self,
        in_flight: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        shared: Allowance | None = None,
    ) -> None:
        self._shared = shared
        self._limit = in_flight
        self._window = float(in_flight)
        self._requests = Rate(requests_per_minute, REQUESTS_EARLY)
        self._tokens = Rate(tokens_per_minute, TOKENS_EARLY)
        self._positions = itertools.count()
        self._queue: list[_Waiter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._busy = 0
        self._cool_until = 0.0
        self._pauses = 0
        """Cool-downs in a row of which the vendor did not say how long."""
        self._worked = True
        """Whether a call went well since the window was last made smaller."""
        self._ramp = 0
        """Calls that are still to start one by one."""
        self._call_time = USUAL_CALL
        self._last_start = 0.0

    def position(self) -> int:
        """A position in the queue, to be kept for one call and all its repetitions."""
        return next(self._positions)

    @asynccontextmanager
    async def turn(self, position: int, tokens: int) -> AsyncIterator[Permit]:
        """Wait for the turn of a position. Report the result with `Permit.succeeded` or
        `Permit.rate_limited`."""
        started = await self._enter(position, tokens)
        try:
            if self._shared is not None:
                await self._shared.take(tokens)
                started = self._now()
            yield Permit(self, started, tokens)
        finally:
            self._busy -= 1
            self._admit()

    # --- what callers report ----------------------------------------------------------------------

    def succeeded(self, started: float, correction: int) -> None:
        self._pauses = 0
        self._worked = True
        self._window = min(self._limit, self._window + 1 / self._window)
        self._call_time += (self._now() - started - self._call_time) / 8
        self._correct(correction)

    def rate_limited(self, started: float, tokens: int, retry_after: float | None) -> None:
        self._correct(-tokens)
        pause = retry_after or 0.0
        if (
            started >= self._cool_until
        ):  # else it had started before the cool-down that is under way or just over
            if self._worked:
                self._window = max(1.0, self._window / 2)
                self._worked = False
            if retry_after is None:
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._pauses)
                self._pauses = min(self._pauses + 1, 10)
        self._cool_until = max(self._cool_until, self._now() + max(pause, LEAST_PAUSE))
        self._ramp = int(self._window)
        self._reject_waiters()

    def _correct(self, tokens: int) -> None:
        self._tokens.correct(tokens)
        if self._shared is not None:
            self._shared.correct(tokens)

    # --- the queue --------------------------------------------------------------------------------

    async def _enter(self, position: int, tokens: int) -> float:
        """When the turn began."""
        self._refuse_long_wait()
        waiter = _Waiter(position, tokens, asyncio.get_running_loop().create_future())
        heapq.heappush(self._queue, waiter)
        self._admit()
        try:
            return await waiter.future
        except BaseException:
            self._forget(waiter)
            raise

    def _forget(self, waiter: _Waiter) -> None:
        if waiter in self._queue:
            self._queue.remove(waiter)
            heapq.heapify(self._queue)
        elif (
            not waiter.future.cancelled() and waiter.future.exception() is None
        ):  # let in, and cancelled at once
            self._busy -= 1
        self._admit()

    def _admit(self) -> None:
        """Let in whoever may go now, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self._busy < int(self._window):
            if self._queue[0].future.done():  # cancelled while it waited
                heapq.heappop(self._queue)
                continue
            now = self._now()
            due = self._due()
            if due > now:
                self._timer = asyncio.get_running_loop().call_at(due, self._admit)
                return
            self._start(heapq.heappop(self._queue), now)

    def _due(self) -> float:
        spaced = self._last_start + self._call_time / self._window if self._ramp else 0.0
        return max(self._cool_until, spaced, self._requests.due, self._tokens.due)

    def _start(self, waiter: _Waiter, now: float) -> None:
        self._busy += 1
        self._ramp = max(0, self._ramp - 1)
        self._last_start = now
        self._requests.take(1, now)
        self._tokens.take(waiter.tokens, now)
        waiter.future.set_result(now)

    def _refuse_long_wait(self) -> None:
        wait = self._cool_until - self._now()
        if wait > LONGEST_WAIT:
            raise _try_later(wait)

    def _reject_waiters(self) -> None:
        wait = self._cool_until - self._now()
        if wait > LONGEST_WAIT:
            waiting, self._queue = self._queue, []
            for waiter in waiting:
                if not waiter.future.done():
                    waiter.future.set_exception(_try_later(wait))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass(slots=True)
class Permit:
    """A call that may be made now."""

    pacer: Pacer
    started: float
    tokens: int

    def succeeded(self, tokens: int) -> None:
        """The vendor took it. `tokens` is what it really used."""
        self.pacer.succeeded(self.started, tokens - self.tokens)

    def rate_limited(self, retry_after: float | None) -> None:
        """The vendor asked to wait: all callers do."""
        self.pacer.rate_limited(self.started, self.tokens, retry_after)


class Rate:
    """Units per minute, evenly. However many are taken at once: what is too much is paid off before
    the next."""

    def __init__(self, per_minute: int | None, early: float) -> None:
        self._seconds_each = 60 / per_minute if per_minute else 0.0
        self._early = early
        self._paid_until = 0.0

    @property
    def due(self) -> float:
        """When the next may be taken."""
        return self._paid_until - self._early

    def take(self, units: int, now: float) -> None:
        self._paid_until = max(self._paid_until, now) + units * self._seconds_each

    def correct(self, units: int) -> None:
        """So many more were taken than it was thought, or fewer."""
        self._paid_until += units * self._seconds_each


@dataclass(slots=True, order=True)
class _Waiter:
    position: int
    tokens: int = field(compare=False)
    future: asyncio.Future[float] = field(compare=False)


def _try_later(wait: float) -> Transient:
    return Transient(f"the vendor asks for {wait:.0f} s before the next call", retry_after=wait)
