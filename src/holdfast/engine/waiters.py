"""Those who wait for a run to end: told at once by this process's worker, or by watching the
store."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakValueDictionary

from msgspec import Struct

from holdfast.errors import Transient
from holdfast.model.run import ErrorInfo
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.waiters")


class Ending(Struct, frozen=True):
    """How a run ended."""

    state: str
    result: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None


class Waiters:
    """Futures by run id, while somebody holds them, and one task that watches the store while there
    are any."""

    def __init__(self) -> None:
        self.watched_locally = False
        """A worker of this process tells most endings itself, so that the store is asked less
        often."""
        self._futures: WeakValueDictionary[str, asyncio.Future[Ending]] = WeakValueDictionary()
        self._watching: asyncio.Task[None] | None = None

    def future(self, run: str) -> asyncio.Future[Ending]:
        found = self._futures.get(run)
        if found is None or found.done():
            found = self._futures[run] = asyncio.get_running_loop().create_future()
        return found

    def resolve(self, run: str, ending: Ending) -> None:
        future = (
            self._futures.pop(run, None) if self._futures else None
        )  # most workers run where nobody waits
        if future is not None and not future.done():
            future.set_result(ending)

    def watch(self, store: Store) -> None:
        if self._futures and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(store))

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, store: Store) -> None:
        change = 0
        while self._futures:
            try:
                for run in await store.over(list(self._futures)):
                    self.resolve(run.id, Ending(run.state, run.result, run.error, run.reason))
            except Transient as error:
                log.warning("can't look for ended runs: %s", error)
                await asyncio.sleep(1.0)
            if self.watched_locally:
                await asyncio.sleep(1.0)
            else:
                change = await store.wait(change, 1.0)
                await asyncio.sleep(0.01)
