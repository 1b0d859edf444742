"""The lease keeper renews all leases of a process, from a thread of its own. Python code can't
block it; C code that holds the interpreter lock can.

Who is the authority: the store. A lease is kept while the store says so, and given up locally at
`trusted_until = request start + ttl − margin`, whether or not the store could be asked.

What can go wrong, and what happens:

the store refuses a renewal      the lease is lost at once: another has it, or the run was cancelled
the store does not answer        the lease is lost when its trust ends, `margin` before its end
the process is paused            on waking, leases past their trust are lost before any is renewed
user code blocks the event loop  nothing: this thread has its own
C code holds the interpreter     nothing, if it lets go in time; otherwise as when the process is
lock                             paused, and `recent_block` tells the cause
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from holdfast.engine.interpreter import InterpreterWatch
from holdfast.engine.lease import Lease
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Renew, RenewLocks
from holdfast.model.lease import LeaseTimes
from holdfast.model.lease_losses import Blocked
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.leases")

_NOT_KEPT = object()

WATCH_INTERVAL = 1.0
"""How often the keeper looks for leases that can't be trusted any more, in seconds, or oftener."""

RECENT = 5.0
"""For so many seconds after the interpreter was blocked, lost leases are put down to that."""

BEHIND = 2.0
"""A keeper that has not looked at its leases for so many seconds is behind."""

CATCH_UP = 0.5
"""How long it takes to say why leases were lost, in seconds, before anything new is claimed."""

RESTART_DELAY = 0.5
"""Before a keeper that failed goes on, in seconds."""
SHORTEST_PAUSE = 0.05
"""Between two renewals, in seconds: a store that does not answer is not asked without end."""


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
        self._own_times: dict[Lease, LeaseTimes] = {}
        """The times of those leases that have their own: a handful of locks."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self.renewed_at = clock.monotonic()
        """When leases were last renewed with success: readiness looks at it."""
        self.beats: list[Callable[[], Awaitable[None]]] = []
        """Called once in every renewal interval, apart from renewals. They raise nothing."""
        self._interpreter: InterpreterWatch | None = None
        self._block: tuple[Blocked, float] | None = None
        """When the interpreter was blocked last, and until when."""
        self.interventions = 0
        """How often somebody may have taken a lease away. Who claims compares: a run that was
        cancelled before its lease was kept is asked about again."""

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
        if lease.times is not None:
            self._own_times[lease] = lease.times
            self.check_now()  # it may have to be renewed sooner than everything else

    def drop(self, lease: Lease) -> bool:
        """Renew it no more. Whether it was kept until now."""
        self._own_times.pop(lease, None)
        return self._leases.pop(lease, _NOT_KEPT) is not _NOT_KEPT

    def note_intervention(self) -> None:
        """Somebody has taken a lease away, perhaps one of ours."""
        self.interventions += 1
        if self._leases:
            self.check_now()

    def apply(self, commands: Sequence[Command[Any]], timeout: float) -> None:
        """Apply commands from any thread but the keeper's own, while nobody else can."""
        assert self._loop is not None, "it was started"
        work = self._store.apply(commands)
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    @property
    def is_behind(self) -> bool:
        """Whether it can't keep up, or could not until now: then nobody should claim more."""
        if self._interpreter is None:
            return False
        just_blocked = self._block is not None and self._since(self._block[1]) < CATCH_UP
        return just_blocked or time.monotonic() - self._interpreter.looked > BEHIND

    def _since(self, moment: float) -> float:
        return self._clock.monotonic() - moment

    def recent_block(self) -> Blocked | None:
        """Why a lease could not be renewed just now: the interpreter was blocked for so long."""
        if self._block is None:
            return None
        blocked, ended = self._block
        is_recent, times = self._since(ended) < RECENT, self._times
        return (
            blocked
            if is_recent and blocked.seconds >= times.ttl - times.margin - times.renew
            else None
        )

    def check_now(self) -> None:
        """Ask the store about all leases now rather than at the next renewal."""
        if self._loop is not None and self._wake is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake.set)
            except RuntimeError:  # the keeper has ended
                pass

    def _run_thread(self) -> None:
        while not self._stopping:
            try:
                asyncio.run(self._keep())
            except Exception:
                log.exception("the lease keeper failed, starts again in %g s", RESTART_DELAY)
                time.sleep(RESTART_DELAY)

    async def _keep(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._interpreter = InterpreterWatch() if self._threaded else None
        tasks = [asyncio.create_task(self._watch_trust()), asyncio.create_task(self._beat())]
        try:
            while not self._stopping:
                await self._renew()
                try:
                    async with asyncio.timeout(self._next_renewal()):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
        finally:
            for task in tasks:
                task.cancel()

    def _next_renewal(self) -> float:
        """How long until something has to be renewed, in seconds."""
        now = self._clock.monotonic()
        own = list(self._own_times.items())
        due = (lease.renewed + times.renew - now for lease, times in own)
        return max(SHORTEST_PAUSE, min([self._times.renew, *due]))

    async def _watch_trust(self) -> None:
        """Drop what can't be trusted any more, also while a renewal hangs."""
        while True:
            await asyncio.sleep(self._watch_interval)
            self._drop_untrusted()

    @property
    def _watch_interval(self) -> float:
        margins = (times.margin for times in list(self._own_times.values()))
        return min([WATCH_INTERVAL, self._times.margin / 4, *(m / 4 for m in margins)])

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._times.renew)
            for beat in list(self.beats):
                await beat()

    def _drop_untrusted(self) -> None:
        self._look_for_blocks()
        for lease in list(self._leases):
            if not lease.trusted:
                self._lose(lease, str(self.recent_block() or "it could not be renewed in time"))

    def _look_for_blocks(self) -> None:
        if self._interpreter is None:
            return
        if (blocked := self._interpreter.look(self._watch_interval)) is not None:
            self._block = blocked, self._clock.monotonic()
            log.warning("%s: leases could not be renewed meanwhile", blocked)

    async def _renew(self) -> None:
        self._drop_untrusted()
        leases = list(self._leases)
        runs = {(lease.subject, lease.epoch): lease for lease in leases if not lease.token}
        locks = {
            (lease.subject, lease.token): lease
            for lease in leases
            if lease.token and lease.times is None
        }
        if not leases:
            self.renewed_at = self._clock.monotonic()
            return
        start = self._clock.monotonic()
        own = [lease for lease in leases if lease.times is not None]
        try:
            lost_runs, lost_locks, *lost_own = await self._store.apply(
                [
                    Renew(list(runs), self._times.ttl),
                    RenewLocks(list(locks), self._times.ttl),
                    *(
                        RenewLocks([(lease.subject, lease.token)], times.ttl)
                        for lease in own
                        if (times := lease.times) is not None
                    ),
                ]
            )
        except Exception as error:  # whatever it is: this thread must outlive it
            log.warning("leases could not be renewed: %s: %s", type(error).__name__, error)
            return
        self.renewed_at = start
        self._extend(runs, {tuple(pair) for pair in lost_runs}, start)
        self._extend(locks, {tuple(pair) for pair in lost_locks}, start)
        for lease, lost in zip(own, lost_own, strict=True):
            key = (lease.subject, lease.token)
            self._extend({key: lease}, {tuple(pair) for pair in lost}, start)

    def _extend(self, leases: Mapping[Any, Lease], lost: set[Any], start: float) -> None:
        for pair, lease in leases.items():
            if pair in lost:
                # A run that was settled just now, too: its worker says so if it was not.
                level = logging.INFO if lease.token else logging.DEBUG
                self._lose(lease, "the store refused to renew it", level)
            else:
                lease.renewed = start
                lease.extend((lease.times or self._times).trusted_until(start))

    def _lose(self, lease: Lease, reason: str, level: int = logging.INFO) -> None:
        if self.drop(lease) and not lease.lost:
            log.log(
                level, "lost the lease on %s (epoch %d): %s", lease.subject, lease.epoch, reason
            )
            lease.lose()
