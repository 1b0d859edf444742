"""Those who wait for a run to end: told at once by a worker of this process, or by watching the
store."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from holdfast.engine.local_workers import LocalWorkers
from holdfast.errors import StoreUnavailable, Transient
from holdfast.model.commands import Settle
from holdfast.model.run import ErrorInfo, Run
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.waiters")

POLL_INTERVAL = 1.0
"""Between two looks at the store, in seconds, when nothing wakes us in between."""

SETTLE_TIME = 0.01
"""After a change, in seconds: so that a burst of changes costs one look."""


class Ending(Struct, frozen=True):
    """How a run ended."""

    state: str
    result: str | None = None
    checksum: str | None = None
    """What the result must hash to."""
    error: ErrorInfo | None = None
    reason: str | None = None


class Waiters:
    """Futures by run id, while somebody holds them, and one task that watches the store while there
    are any."""

    def __init__(self, store: Store, local_workers: LocalWorkers) -> None:
        self._store = store
        self._local_workers = local_workers
        self._futures: WeakValueDictionary[str, asyncio.Future[Ending]] = WeakValueDictionary()
        self._watching: asyncio.Task[None] | None = None

    def future(self, run: str) -> asyncio.Future[Ending]:
        future = self._futures.get(run)
        if future is None or future.done():
            future = self._futures[run] = asyncio.get_running_loop().create_future()
        return future

    def resolve(self, run: str, ending: Ending) -> None:
        if not self._futures:  # most workers run where nobody waits
            return
        future = self._futures.pop(run, None)
        if future is not None and not future.done():
            future.set_result(ending)

    async def resolve_ended(self, runs: list[str]) -> None:
        """Resolve those of the runs that have ended according to the store."""
        for run in await self._store.over(runs):
            self.resolve(run.id, ending_of(run))

    def watch(self) -> None:
        """See to it that the store is watched while anybody waits."""
        if self._futures and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch())

    def stop(self) -> None:
        """Nothing is watched any more: whoever still waits is told so."""
        if self._watching is not None:
            self._watching.cancel()
        self._give_up(StoreUnavailable("the app was closed while somebody waited for its runs"))

    def _give_up(self, error: Exception) -> None:
        for future in list(self._futures.values()):
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(error)
                future.exception()  # nobody has to wait for it
        self._futures.clear()

    async def _watch(self) -> None:
        try:
            await self._resolve_all()
        except Exception as error:
            self._give_up(error)

    async def _resolve_all(self) -> None:
        """Look at the store until nobody waits. While it is away they wait for it, too."""
        change = 0
        while self._futures:
            try:
                await self.resolve_ended(list(self._futures))
            except Transient as error:
                log.warning("can't look for ended runs: %s", error)
                await asyncio.sleep(POLL_INTERVAL)
            if self._local_workers:  # it tells most endings by itself
                await asyncio.sleep(POLL_INTERVAL)
            else:
                change = await self._store.wait(change, POLL_INTERVAL)
                await asyncio.sleep(SETTLE_TIME)


def ending_of(run: Run) -> Ending:
    return Ending(run.state, run.result, run.result_checksum, run.error, run.reason)


def settled_ending(settle: Settle) -> Ending | None:
    """How a run ends that is settled like this; None when it goes on."""
    if settle.outcome == "succeeded":
        return Ending("succeeded", settle.result, settle.checksum)
    if settle.outcome == "failed":
        error = msgspec.json.decode(settle.error, type=ErrorInfo) if settle.error else None
        return Ending("failed", error=error)
    return None
