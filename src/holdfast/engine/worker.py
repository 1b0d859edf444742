"""The worker: executes the runs that its claimers claim, and hands them over when it is told to
stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from holdfast.engine.attempt import Attempt
from holdfast.engine.capacity import Capacity
from holdfast.engine.claiming import LaneClaimer
from holdfast.engine.execution import Execution
from holdfast.engine.graph import Plan
from holdfast.engine.lanes import lanes_of
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.engine.waiters import settled_ending
from holdfast.engine.worker_log import log_lease_lost, log_settled, log_started
from holdfast.errors import LeaseLost
from holdfast.model.commands import Claimed, Settle
from holdfast.model.ids import new_token
from holdfast.model.options import WorkerOptions
from holdfast.model.pipeline import Pipeline

log = logging.getLogger("holdfast.worker")

CANCEL_NOTICE = 1.0
"""How soon after a cancel in another process work on the run is stopped, in seconds. Its writes are
refused at once."""


class _Running(Struct):
    """A run that is being executed."""

    execution: Execution
    task: asyncio.Task[None] | None = None
    is_executing: bool = False

    def interrupt(self) -> None:
        """Before its task has begun it can't be interrupted, and need not be: it looks before it
        starts anything. And what writes its outcome ends by itself, at the latest with its
        lease."""
        if self.is_executing and self.task is not None:
            self.task.cancel()


class Worker:
    """Executes runs of the given pipelines, whose lanes the store knows. `name` is unique per
    process start."""

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
        self._capacity = Capacity(self.options.concurrency, self.options.max_bytes)
        self._claimers = {
            lane.name: LaneClaimer(
                runtime, self.name, lane, names, self.options, self._capacity, self._begin
            )
            for lane, names in lanes_of(self._pipelines.values()).items()
        }
        self._running: dict[Lease, _Running] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop

    @property
    def active(self) -> int:
        return len(self._running)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._runtime.keeper.start()
        for name, claimer in self._claimers.items():
            self._tasks.append(asyncio.create_task(claimer.run(), name=f"lane-{name}"))
        self._tasks.append(asyncio.create_task(self._write_progress(), name="progress"))
        self._tasks.append(asyncio.create_task(self._check_leases(), name="leases"))
        self._runtime.local_workers.add(self._on_submission)

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, let steps under way end within `grace`, then hand all unfinished runs
        over."""
        grace = self.options.grace if grace is None else grace
        self._runtime.local_workers.remove(self._on_submission)
        self._capacity.close()
        for running in self._running.values():
            running.execution.attempt.graph.drain()
        if self._running and grace > 0:
            await asyncio.wait(self._run_tasks(), timeout=grace)
        for claimer in self._claimers.values():
            await claimer.finish()  # what they still bring is handed over, too
        for running in self._running.values():
            running.interrupt()
        if self._running:
            await asyncio.wait(self._run_tasks())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._runtime.committer.drain()

    def lose(self, run: str) -> None:
        """Somebody in this process cancelled or paused the run: stop working on it now."""
        for lease in self._running:
            if lease.subject == run:
                lease.lose()

    def _run_tasks(self) -> list[asyncio.Task[None]]:
        return [running.task for running in self._running.values() if running.task is not None]

    def _on_submission(self, lane: str) -> None:
        if lane in self._claimers:
            self._claimers[lane].claim_early()

    # --- executing --------------------------------------------------------------------------------

    def _begin(self, claimed: Claimed, trusted_until: float) -> None:
        pipeline = self._pipelines[claimed.pipeline]
        lease = Lease(claimed.run, claimed.epoch, trusted_until, self._runtime.clock, self._lost)
        execution = Execution(claimed, pipeline, self._plans[pipeline.name], lease, self._runtime)
        if self._capacity.closed:
            execution.attempt.graph.drain()
        running = self._running[lease] = _Running(execution)
        running.task = self._loop.create_task(self._execute(running))
        self._runtime.keeper.keep(lease)

    async def _execute(self, running: _Running) -> None:
        running.is_executing = True
        attempt = running.execution.attempt
        log_started(attempt, self.name)
        started = self._runtime.clock.monotonic()
        try:
            try:
                settle = await running.execution.execute()
            finally:
                running.is_executing = False
                self._capacity.release()
            if settle is not None:
                await self._settle(attempt, settle, started)
            else:
                log_lease_lost(attempt)
        except Exception:
            log.exception("run %s: the worker failed", attempt.claimed.run)
        finally:
            self._end(attempt)

    async def _settle(self, attempt: Attempt, settle: Settle, started: float) -> None:
        try:
            await attempt.gate.persist(settle)
        except LeaseLost:
            log_lease_lost(attempt)
            return
        log_settled(attempt, settle, self._runtime.clock.monotonic() - started)
        if (ending := settled_ending(settle)) is not None:
            self._runtime.waiters.resolve(settle.run, ending)
        elif settle.outcome == "retry" and settle.delay > 0:
            self._claimers[attempt.claimed.lane].expect_retry(settle.delay)

    def _end(self, attempt: Attempt) -> None:
        del self._running[attempt.gate.lease]
        self._runtime.keeper.drop(attempt.gate.lease)
        self._capacity.remove_input(len(attempt.claimed.input))

    # --- leases -----------------------------------------------------------------------------------

    def _lost(self, lease: Lease) -> None:
        """Called by the keeper, in its thread."""
        self._loop.call_soon_threadsafe(self._interrupt, lease)

    def _interrupt(self, lease: Lease) -> None:
        if (running := self._running.get(lease)) is not None:
            running.interrupt()

    async def _check_leases(self) -> None:
        """When something changes in the store, a run of ours may have been cancelled elsewhere:
        ask, but not all the time."""
        change = 0
        while True:
            change = await self._runtime.store.wait(change, self.options.poll)
            if self._running:
                self._runtime.keeper.check_now()
            await asyncio.sleep(CANCEL_NOTICE)

    # --- progress ---------------------------------------------------------------------------------

    async def _write_progress(self) -> None:
        """Write what has changed since the last round."""
        written: dict[str, str] = {}
        while True:
            await asyncio.sleep(self.options.progress)
            now: dict[str, str] = {}
            for lease, running in list(self._running.items()):
                attempt = running.execution.attempt
                now[lease.subject] = progress = attempt.journal.progress_text()
                changed = progress != written.get(lease.subject)
                if changed and lease.trusted and not attempt.over:
                    attempt.gate.show_progress(progress)
            written = now
