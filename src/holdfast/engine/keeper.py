"""The lease keeper renews all leases of a process, from a thread that user code cannot block.

Who is the authority: the store. A lease is kept while the store says so, and given up locally at
`trusted_until = request start + ttl − margin`, whether or not the store could be asked.

What can go wrong, and what happens:

the store refuses a renewal      the lease is lost at once: another has it, or the run was cancelled
the store does not answer        the lease is lost when its trust ends, `margin` before its end
the process is paused            on waking, leases past their trust are lost before any is renewed
user code blocks the event loop  nothing: this thread has its own
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Any

from holdfast.engine.lease import Lease
from holdfast.model.clock import Clock
from holdfast.model.commands import Renew, RenewLocks
from holdfast.model.lease import LeaseTimes
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.leases")

_NOT_KEPT = object()


class LeaseKeeper:
    """Call `start`, then `keep` and `drop` from any thread.

    `threaded=False` keeps the leases from a task of the caller's loop, for simulations that own
    time."""

    def __init__(
        self, store: Store, clock: Clock, times: LeaseTimes, *, threaded: bool = True
    ) -> None:
        self._store = store
        self._clock = clock
        self._times = times
        self._threaded = threaded
        # Only ever put in, taken out and copied: all of that is atomic.
        self._leases: dict[Lease, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self.renewed_at = clock.monotonic()
        """When leases were last renewed with success: readiness looks at it."""

    @property
    def started(self) -> bool:
        return self._task is not None or self._thread is not None

    async def start(self) -> None:
        if self.started:
            return
        self._stopping = False
        if self._threaded:
            self._thread = threading.Thread(
                target=self._run_thread, name="holdfast-lease-keeper", daemon=True
            )
            self._thread.start()
        else:
            self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        self._stopping = True
        self.check_now()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        if self._task is not None:
            await self._task
            self._task = None

    def keep(self, lease: Lease) -> None:
        """Renew this lease until it is dropped or lost. Leases with a token are locks."""
        self._leases[lease] = None

    def drop(self, lease: Lease) -> bool:
        """Renew it no more. Whether it was kept until now."""
        return self._leases.pop(lease, _NOT_KEPT) is not _NOT_KEPT

    def check_now(self) -> None:
        """Ask the store about all leases now rather than at the next renewal."""
        if self._loop is not None and self._wake is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake.set)
            except RuntimeError:  # the keeper has ended
                pass

    def _run_thread(self) -> None:
        asyncio.run(self._keep())

    async def _keep(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        watch = asyncio.create_task(self._watch_trust())
        try:
            while not self._stopping:
                await self._renew()
                try:
                    async with asyncio.timeout(self._times.renew):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
        finally:
            watch.cancel()

    async def _watch_trust(self) -> None:
        """Drop what can't be trusted any more, also while a renewal hangs."""
        interval = min(1.0, self._times.margin / 4)
        while True:
            await asyncio.sleep(interval)
            self._drop_untrusted()

    def _drop_untrusted(self) -> None:
        for lease in list(self._leases):
            if not lease.trusted:
                self._lose(lease, "it could not be renewed in time")

    async def _renew(self) -> None:
        self._drop_untrusted()
        leases = list(self._leases)
        runs = {(lease.subject, lease.epoch): lease for lease in leases if not lease.token}
        locks = {(lease.subject, lease.token): lease for lease in leases if lease.token}
        if not leases:
            self.renewed_at = self._clock.monotonic()
            return
        start = self._clock.monotonic()
        try:
            lost_runs, lost_locks = await self._store.apply(
                [
                    Renew(list(runs), self._times.ttl),
                    RenewLocks(list(locks), self._times.ttl),
                ]
            )
        except Exception as error:  # whatever it is: this thread must outlive it
            log.warning("leases could not be renewed: %s: %s", type(error).__name__, error)
            return
        self.renewed_at = start
        self._extend(runs, {tuple(pair) for pair in lost_runs}, start)
        self._extend(locks, {tuple(pair) for pair in lost_locks}, start)

    def _extend(self, leases: Mapping[Any, Lease], lost: set[Any], start: float) -> None:
        for pair, lease in leases.items():
            if pair in lost:
                self._lose(lease, "the store refused to renew it")
            else:
                lease.extend(self._times.trusted_until(start))

    def _lose(self, lease: Lease, reason: str) -> None:
        if self.drop(lease) and not lease.lost:
            log.info("lost the lease on %s (epoch %d): %s", lease.subject, lease.epoch, reason)
            lease.lose()
