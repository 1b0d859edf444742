"""Workers that stand by: each is given one run, by whoever submits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.model.clock import Clock
from holdfast.model.commands import Claim, Claimed


class Waiter:
    """A worker that waits in its own event loop. Dead or alive, it is given nothing when its time
    is over."""

    def __init__(self, claims: Sequence[Claim], until: float) -> None:
        self.claims = claims
        self.until = until
        self.given: list[Claimed] = []
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass

    def wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:
            pass  # that loop was closed: what was given is lost until its lease ends


class Waiters:
    """Those who stand by, in the order in which they came. Its owner sees to it that one thread at
    a time uses it."""

    def __init__(self, clock: Clock, patience: float) -> None:
        self._clock = clock
        self.patience = patience
        self._waiting: list[Waiter] = []

    def sit_down(self, claims: Sequence[Claim]) -> Waiter:
        waiter = Waiter(claims, self._clock.monotonic() + self.patience)
        self._waiting.append(waiter)
        return waiter

    def get_up(self, waiter: Waiter) -> list[Claimed]:
        """What it was given; nothing comes any more."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        return waiter.given

    def give(self, claim: Callable[[Claim], list[Claimed]]) -> None:
        """Let each claim one run, as long as there are runs."""
        now = self._clock.monotonic()
        self._waiting = [waiter for waiter in self._waiting if waiter.until > now]
        for waiter in list(self._waiting):
            waiter.given = next(filter(None, map(claim, waiter.claims)), [])
            if waiter.given:
                self._waiting.remove(waiter)
                waiter.wake()
