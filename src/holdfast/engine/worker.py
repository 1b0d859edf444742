"""The worker: claims runs within its limits, executes them, and hands them over when it is told to
stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Iterable
from typing import Any

from msgspec import Struct

from holdfast.engine.execution import Execution
from holdfast.engine.lanes import LaneLeader
from holdfast.engine.lease import Lease
from holdfast.engine.plan import Plan
from holdfast.engine.runtime import Runtime
from holdfast.engine.settlement import attempt, ending
from holdfast.errors import ConfigurationError, LeaseLost, Transient
from holdfast.model.commands import Claim, Claimed, DefineLane, SaveProgress, Settle
from holdfast.model.ids import new_token
from holdfast.model.lane import Lane
from holdfast.model.options import WorkerOptions
from holdfast.model.pipeline import Pipeline

log = logging.getLogger("holdfast.worker")


CANCEL_NOTICE = 1.0
"""How soon after a cancel in another process work on the run is stopped, in seconds. Its writes are
refused at once."""


class _Attempt(Struct, frozen=True):
    """An attempt that is under way."""

    execution: Execution
    task: asyncio.Task[None]

    def interrupt(self) -> None:
        """Before its task has begun it can't be interrupted, and need not be: it looks before it
        starts anything."""
        if self.execution.begun:
            self.task.cancel()


class _Asked(Struct, frozen=True):
    """A claim that was sent: what comes of it, how many runs at most, and when."""

    answer: asyncio.Future[Any]
    limit: int
    at: float


def _forgive(claim: asyncio.Task[bool]) -> None:
    """Look at what became of it, so that nobody complains if nobody waits for it: a lane's own loop
    will say so."""
    if not claim.cancelled():
        claim.exception()


class Worker:
    """Executes runs of the given pipelines. `name` is unique per process start."""

    def __init__(
        self,
        runtime: Runtime,
        pipelines: Iterable[Pipeline[Any]],
        options: WorkerOptions | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{new_token()[:8]}"
        self.options = options or WorkerOptions()
        self._runtime = runtime
        self._pipelines = {pipeline.name: pipeline for pipeline in pipelines}
        self._plans = {name: Plan(pipeline) for name, pipeline in self._pipelines.items()}
        self._active: dict[Lease, _Attempt] = {}
        self._settling = 0
        self._expected = 0
        self._bytes = 0
        self._due: list[float] = []
        self._claims: set[asyncio.Task[bool]] = set()
        self._early: asyncio.Task[bool] | None = None
        self._parallel = {
            lane.name: names for lane, names in self._lanes().items() if lane.order == "parallel"
        }
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop

    @property
    def active(self) -> int:
        return len(self._active)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._runtime.keeper.start()
        for lane, names in self._lanes().items():
            await self._define(lane)
            leader = LaneLeader(self._runtime, lane, self.name) if lane.order == "fifo" else None
            self._loops.append(
                asyncio.create_task(self._serve(lane, names, leader), name=f"lane-{lane.name}")
            )
        self._loops.append(asyncio.create_task(self._show_progress(), name="progress"))
        self._loops.append(asyncio.create_task(self._look_after_leases(), name="leases"))
        self._runtime.local_workers.add(self._on_submission)

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, let steps under way end within `grace`, then hand all unfinished runs
        over."""
        grace = self.options.grace if grace is None else grace
        self._runtime.local_workers.remove(self._on_submission)
        self._stopping.set()
        self._room.set()
        for each in self._active.values():
            each.execution.drain()
        if self._active and grace > 0:
            await asyncio.wait([each.task for each in self._active.values()], timeout=grace)
        while self._claims:
            await asyncio.wait(self._claims)  # what they are given is handed over, too
        for each in self._active.values():
            each.interrupt()
        if self._active:
            await asyncio.wait([each.task for each in self._active.values()])
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._loops.clear()
        await self._runtime.committer.drain()

    def lose(self, run: str) -> None:
        """Somebody in this process cancelled or paused the run: stop working on it now."""
        for lease in self._active:
            if lease.subject == run:
                lease.lose()

    def _lanes(self) -> dict[Lane, list[str]]:
        lanes: dict[Lane, list[str]] = {}
        for pipeline in self._pipelines.values():
            lanes.setdefault(pipeline.lane, []).append(pipeline.name)
        names = [lane.name for lane in lanes]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"lane {name!r} is declared twice, with different order or head: choose one"
                )
        return lanes

    async def _define(self, lane: Lane) -> None:
        stored = await self._runtime.committer.send(DefineLane(lane.name, lane.order, lane.head))
        if stored != lane.order:
            raise ConfigurationError(
                f"lane {lane.name!r} is {stored!r} in this store and {lane.order!r} in the code: a "
                "lane never changes "
                "its order; use another lane name"
            )

    # --- claiming ---------------------------------------------------------------------------------

    async def _serve(self, lane: Lane, names: list[str], leader: LaneLeader | None) -> None:
        """Claim whenever there is room and the doorbell rang."""
        change = 0
        try:
            while not self._stopping.is_set():
                if self._free == 0:
                    self._room.clear()
                    await self._room.wait()
                elif (
                    not await self._try_to_claim(lane, names, leader)
                    and not self._stopping.is_set()
                ):
                    change = await self._runtime.store.wait(
                        change, self._patience(), work=leader is None
                    )
        finally:
            if leader is not None:
                await leader.resign()

    async def _try_to_claim(self, lane: Lane, names: list[str], leader: LaneLeader | None) -> bool:
        """Whether it is worth while to try again at once."""
        try:
            if leader is not None and not await leader.lead():
                return False
            return await asyncio.shield(self._start_claim(lane, names, leader))
        except Transient as error:
            log.warning("lane %s: can't claim: %s", lane.name, error)
            await asyncio.sleep(self.options.poll)
            return True

    def _patience(self) -> float:
        """How long to wait for the bell: not past the moment when a run that was sent back is
        due."""
        now = self._loop.time()
        self._due = [due for due in self._due if due > now]
        return min([self.options.poll, *(due - now for due in self._due)])

    def _on_submission(self, lane: str) -> None:
        """Let a claim leave with the submission that is about to be sent: one commit less until
        work begins."""
        names = self._parallel.get(lane)
        early = self._early is not None and not self._early.done()
        if names and not early and self._free and not self._stopping.is_set():
            self._early = self._start_claim(Lane(lane), names, None)

    @property
    def _free(self) -> int:
        """Runs that may be claimed now. Those whose outcome is on its way to the store do nothing
        else any more: the runs that take their places can be claimed in the same transaction."""
        return self.options.concurrency - len(self._active) + self._settling - self._expected

    def _start_claim(
        self, lane: Lane, names: list[str], leader: LaneLeader | None
    ) -> asyncio.Task[bool]:
        return self._on_its_own(self._claim(lane, names, leader))

    def _on_its_own(self, claiming: Coroutine[Any, Any, bool]) -> asyncio.Task[bool]:
        """A task of its own: who waits for it may be cancelled, what the store gives to it must not
        be lost."""
        claim = asyncio.create_task(claiming)
        self._claims.add(claim)
        claim.add_done_callback(self._claims.discard)
        claim.add_done_callback(_forgive)
        return claim

    async def _claim(self, lane: Lane, names: list[str], leader: LaneLeader | None) -> bool:
        """Claim and begin as many runs as there are and as there is room for. Whether there may be
        more."""
        asked, claimed = self._ask(lane, names, leader), None
        while asked is not None:
            claimed = await self._answer(asked)
            # The next ones are fetched while these begin: the store need not wait for us, nor we
            # for the store.
            has_more = leader is None and len(claimed) == asked.limit
            trusted_until = self._runtime.times.trusted_until(asked.at)
            asked = self._ask(lane, names, None) if has_more else None
            for each in claimed:
                self._begin(each, trusted_until)
        return claimed is None or len(claimed) > 0

    def _ask(self, lane: Lane, names: list[str], leader: LaneLeader | None) -> _Asked | None:
        half = (
            self.options.concurrency + 1
        ) // 2  # while the store is busy with one half, we are with the other
        limit = min(self._free, self.options.batch, half)
        if limit == 0 or self._stopping.is_set():
            return None
        self._expected += limit
        at = self._runtime.clock.monotonic()
        ttl, max_bytes = self._runtime.times.ttl, max(0, self.options.max_bytes - self._bytes)
        token, term = (leader.token, leader.term) if leader else (None, 0)
        answer = self._runtime.committer.send(
            Claim(self.name, lane.name, names, limit, ttl, max_bytes, token, term)
        )
        return _Asked(answer, limit, at)

    async def _answer(self, asked: _Asked) -> list[Claimed]:
        claimed: list[Claimed] = []
        try:
            claimed = await asked.answer
        finally:
            self._expected -= asked.limit - len(claimed)
            self._room.set()
        self._bytes += sum(len(each.input) for each in claimed)
        return claimed

    async def _look_after_leases(self) -> None:
        """When the bell rings, a run of ours may have been cancelled elsewhere: ask, but not all
        the time."""
        change = 0
        while True:
            change = await self._runtime.store.wait(change, self.options.poll)
            if self._active:
                self._runtime.keeper.check_now()
            await asyncio.sleep(CANCEL_NOTICE)

    # --- executing --------------------------------------------------------------------------------

    def _begin(self, claimed: Claimed, trusted_until: float) -> None:
        pipeline = self._pipelines[claimed.pipeline]
        lease = Lease(claimed.run, claimed.epoch, trusted_until, self._runtime.clock, self._lost)
        execution = Execution(claimed, pipeline, self._plans[pipeline.name], lease, self._runtime)
        if self._stopping.is_set():
            execution.drain()
        self._active[lease] = _Attempt(execution, self._loop.create_task(self._execute(execution)))
        self._runtime.keeper.keep(lease)
        self._expected -= 1

    def _lost(self, lease: Lease) -> None:
        self._loop.call_soon_threadsafe(self._interrupt, lease)

    def _interrupt(self, lease: Lease) -> None:
        if (found := self._active.get(lease)) is not None:
            found.interrupt()

    async def _execute(self, execution: Execution) -> None:
        execution.begun = True
        try:
            settle = await attempt(execution)
            if settle is not None:
                await self._settle(execution, settle)
            else:
                log.info("run %s: lease lost, stopped without a trace", execution.claimed.run)
        except Exception:
            log.exception("run %s: the worker failed", execution.claimed.run)
        finally:
            self._end(execution)

    def _end(self, execution: Execution) -> None:
        del self._active[execution.lease]
        self._runtime.keeper.drop(execution.lease)
        self._bytes -= len(execution.claimed.input)
        self._room.set()

    async def _settle(self, execution: Execution, settle: Settle) -> None:
        self._settling += 1
        self._room.set()
        try:
            await execution.persist(settle)
        except LeaseLost:
            log.info("run %s: lease lost before its outcome was written", settle.run)
            return
        finally:
            self._settling -= 1
        log.info("run %s of %s: %s", settle.run, execution.claimed.pipeline, settle.outcome)
        if told := ending(settle):
            self._runtime.waiters.resolve(settle.run, told)
        elif settle.outcome == "retry" and settle.delay > 0:
            self._due.append(self._loop.time() + settle.delay)

    # --- progress ---------------------------------------------------------------------------------

    async def _show_progress(self) -> None:
        """Write what changed since the last round, and which steps have begun since."""
        shown: dict[str, str] = {}
        while True:
            await asyncio.sleep(self.options.progress)
            for execution in [each.execution for each in self._active.values()]:
                text = execution.progress_text()
                if (
                    text != shown.get(execution.claimed.run)
                    and execution.lease.trusted
                    and not execution.ended
                ):
                    self._runtime.committer.post(
                        SaveProgress(execution.claimed.run, execution.lease.epoch, text)
                    )
                    shown[execution.claimed.run] = text
            shown = {
                lease.subject: shown[lease.subject]
                for lease in self._active
                if lease.subject in shown
            }
