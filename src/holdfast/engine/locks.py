"""Locks and leader election for users' own code, and for lanes.

A lock is a lease: an owner token that nobody else knows, a timeout, renewal in the background, and
an epoch that rises at every acquisition. Pass the epoch to whatever the lock protects and let it
refuse older ones: a lock alone can't stop a holder that was paused for longer than the lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any

from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.errors import Conflict, LeaseLost, StoreUnavailable
from holdfast.model import limits
from holdfast.model.commands import Acquire, Acquired, Held, ReleaseLock
from holdfast.model.ids import new_token
from holdfast.model.lease import LeaseTimes

log = logging.getLogger("holdfast.locks")

POLL_INTERVAL = 0.5
"""Between two tries to acquire a lock, in seconds, when nothing wakes us in between."""


class Lock:
    """One name, one holder at a time.

        async with app.lock("nightly-import") as lock:
            await import_everything(fence=lock.epoch)

    Losing the lock cancels the body, and the block ends with LeaseLost.
    """

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        *,
        owner: str,
        wait: float | None = None,
        internal: bool = False,
        on_lost: Callable[[], None] = lambda: None,
        times: LeaseTimes | None = None,
    ) -> None:
        """`internal` locks are the engine's own: nobody wants to read about them in the log.
        `on_lost` is called in the event loop. `times` are its own, if it is not to have those of
        every lease."""
        self.name = limits.name("lock", name, limits.MAX_KEY)
        self.owner = owner
        self.epoch = 0
        self.token = ""
        self.holder: Held | None = None
        """Who held it when an acquisition failed."""
        self._wait = wait
        self._runtime = runtime
        self._lease: Lease | None = None
        self._loop: asyncio.AbstractEventLoop
        self._body: asyncio.Task[Any] | None = None
        self._was_lost = False
        self._losing: asyncio.Event | None = None
        self._on_lost = on_lost
        self._own_times = times
        self._log_level = logging.DEBUG if internal else logging.INFO

    @property
    def held(self) -> bool:
        return self._lease is not None and self._lease.trusted

    async def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        runtime, token = self._runtime, new_token()
        times = self._own_times or runtime.times
        start = runtime.clock.monotonic()
        reply = await runtime.committer.send(Acquire(self.name, token, self.owner, times.ttl))
        if not isinstance(reply, Acquired):
            self.holder = reply
            return False
        self.token, self.epoch, self.holder = token, reply.epoch, None
        self._loop = runtime.committer.loop
        self._was_lost = False
        if self._losing is not None:
            self._losing.clear()
        self._lease = Lease(
            self.name,
            reply.epoch,
            times.trusted_until(start),
            runtime.clock,
            self._lost_in_keeper,
            token,
            self._own_times,
        )
        if not runtime.keeper.started:
            await runtime.keeper.start()
        runtime.keeper.keep(self._lease)
        log.log(
            self._log_level, "lock %s: acquired by %s, epoch %d", self.name, self.owner, self.epoch
        )
        return True

    async def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock, at most `timeout` seconds. Waiters are woken when it is released."""
        return await self.try_acquire() or await self._acquire_later(timeout)

    async def _acquire_later(self, timeout: float | None) -> bool:
        time = self._runtime.committer.loop.time
        deadline = inf if timeout is None else time() + timeout
        change = 0
        while (left := min(POLL_INTERVAL, deadline - time())) > 0:
            change = await self._runtime.store.wait(change, left)
            if await self.try_acquire():
                return True
        return False

    async def release(self) -> bool:
        """Give the lock back. False if it was not held any more."""
        lease, self._lease = self._lease, None
        if lease is None:
            return False
        self._runtime.keeper.drop(lease)
        if lease.lost:
            return False
        try:
            released = await self._runtime.committer.send(ReleaseLock(self.name, self.token))
        except StoreUnavailable:  # it ends by itself
            return False
        log.log(
            self._log_level, "lock %s: released by %s, epoch %d", self.name, self.owner, self.epoch
        )
        return released

    async def lost(self) -> None:
        """Wait until the lock is lost."""
        if not self._was_lost:
            self._losing = self._losing or asyncio.Event()
            await self._losing.wait()

    async def __aenter__(self) -> Lock:
        if not (await self.try_acquire() or await self._acquire_later(self._wait)):
            by = self.holder.owner if self.holder else "somebody"
            raise Conflict(
                f"lock {self.name!r} is held by {by}; wait longer, or look at `holdfast locks list`"
            )
        self._body = asyncio.current_task(self._runtime.committer.loop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: Any
    ) -> None:
        body, self._body = self._body, None
        lost = self._was_lost
        await self.release()
        if lost and (kind is None or issubclass(kind, asyncio.CancelledError)):
            if body is not None and kind is not None:
                body.uncancel()
            raise LeaseLost(f"lock {self.name!r} (epoch {self.epoch}) was lost while it was in use")

    def _lost_in_keeper(self, lease: Lease) -> None:
        """Called by the keeper, in its thread."""
        with suppress(RuntimeError):  # the loop in which it was acquired is closed
            self._loop.call_soon_threadsafe(self._note_loss, lease)

    def _note_loss(self, lease: Lease) -> None:
        if lease is not self._lease:  # it was acquired anew, or released, before we heard of it
            return
        self._was_lost = True
        self._on_lost()
        if self._losing is not None:
            self._losing.set()
        if self._body is not None:
            self._body.cancel()


class LeaderElection:
    """One leader among all who campaign under a name; `term` rises with every change of leader."""

    def __init__(self, runtime: Runtime, name: str, *, owner: str) -> None:
        self._lock = Lock(runtime, f"leader:{name}", owner=owner)

    @property
    def is_leader(self) -> bool:
        return self._lock.held

    @property
    def term(self) -> int:
        return self._lock.epoch

    async def campaign(self, timeout: float | None = None) -> bool:
        """Wait until this process leads."""
        return self._lock.held or await self._lock.acquire(timeout)

    async def resign(self) -> None:
        await self._lock.release()

    async def lead(self, work: Callable[[int], Awaitable[None]]) -> None:
        """Whenever elected, run `work(term)`; cancel it when leadership is lost, and campaign
        again."""
        while True:
            await self.campaign()
            working = asyncio.ensure_future(work(self.term))
            losing = asyncio.ensure_future(self._lock.lost())
            try:
                await asyncio.wait([working, losing], return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    return working.result()
            finally:
                for task in (working, losing):
                    task.cancel()
                await asyncio.gather(working, losing, return_exceptions=True)
                await self.resign()
