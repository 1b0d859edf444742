"""Supervises the loops of a worker: one that fails is restarted, and one that keeps failing ends
the worker.

Loops deal with what is to be expected, such as a store that is out of reach. What still comes out
of one is a bug or something that only a person can mend (`Fix`: a damaged file, a lane of another
order). After a `Fix` nothing is tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NoReturn

from holdfast.errors import Fix
from holdfast.model.duration import humanise

log = logging.getLogger("holdfast.worker")

Loop = Callable[[], Coroutine[Any, Any, None]]

RESTART_DELAYS = (1.0, 2.0, 4.0, 8.0)
"""How long a loop that failed rests before it is started again, in seconds, time after time. When
they are used up it is given up."""

HEALTHY = 60.0
"""A loop that went on for so long has recovered: its failures are counted anew."""


class Supervisor:
    """Keeps the loops of a process going. `failed` tells whoever runs the process when one of them
    was given up."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def start(self, name: str, loop: Loop) -> asyncio.Task[None]:
        """A task that runs the loop, and starts it again when it fails. Cancel it to end it."""
        return asyncio.create_task(self._keep_going(name, loop), name=name)

    async def failed(self) -> NoReturn:
        """Wait until a loop is given up, and raise what it failed with."""
        if self.failure is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        assert self.failure is not None, "it is noted before"
        raise self.failure

    async def _keep_going(self, name: str, loop: Loop) -> None:
        clock, failures = asyncio.get_running_loop(), 0
        while True:
            started = clock.time()
            try:
                return await loop()
            except Exception as error:
                failures = 1 if clock.time() - started > HEALTHY else failures + 1
                if isinstance(error, Fix) or failures > len(RESTART_DELAYS):
                    return self._give_up(name, error)
                delay = RESTART_DELAYS[failures - 1]
                log.exception("%s failed, starts again in %s", name, humanise(delay))
            await asyncio.sleep(delay)

    def _give_up(self, name: str, error: Exception) -> None:
        where = None if isinstance(error, Fix) else error
        log.critical("%s failed for good, the worker ends: %s", name, error, exc_info=where)
        self.failure = self.failure or error
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their ends."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
