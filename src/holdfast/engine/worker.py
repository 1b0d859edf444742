"""The worker: executes the runs that its claimers claim, and hands them over when it is told to
stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from holdfast.engine import lease_losses
from holdfast.engine.attempt import Attempt
from holdfast.engine.capacity import Capacity
from holdfast.engine.claiming import LaneClaimer
from holdfast.engine.document_writing import Refresher
from holdfast.engine.execution import Execution
from holdfast.engine.graph import Plan
from holdfast.engine.lanes import lanes_of
from holdfast.engine.lease import Lease
from holdfast.engine.progress import ProgressWriter
from holdfast.engine.registry import Registration, WorkerInfo
from holdfast.engine.runtime import Runtime
from holdfast.engine.supervision import end
from holdfast.engine.tracing import note_outcome, origin_of, run_span
from holdfast.engine.waiters import settled_ending
from holdfast.engine.worker_log import log_abandoned, log_lease_lost, log_settled, log_started
from holdfast.errors import LeaseLost
from holdfast.model.commands import Claimed, Settle, Wake
from holdfast.model.ids import new_token, time_of
from holdfast.model.options import WorkerOptions
from holdfast.model.pipeline import Pipeline
from holdfast.model.version import VERSION

log = logging.getLogger("holdfast.worker")

INTERVENTION_INTERVAL = 0.05
"""Between two questions to the store whether somebody has taken leases away, in seconds: a burst of
cancels costs a few."""

BLOCK_NOTICE = 0.05
"""What the keeper's thread needs to notice that the interpreter was blocked, in seconds."""

CLAIMS_TIMEOUT = 0.5
"""How long a worker that stops waits for claims under way, in seconds."""
INTERRUPT_TIMEOUT = 1.3
"""How long interrupted steps may take to end, and their outcomes to be written, in seconds."""
HAND_OVER_TIMEOUT = 0.7
"""How long handing over the runs of steps that do not end may take, in seconds."""
STOP_TIMEOUT = CLAIMS_TIMEOUT + INTERRUPT_TIMEOUT + HAND_OVER_TIMEOUT
"""How long a worker takes at most to stop after the grace, in seconds."""


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
        refresher: Refresher | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{new_token()[:8]}"
        self.options = options or WorkerOptions()
        self._runtime = runtime
        self._refresher = refresher
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
        self._registration = Registration(runtime.records, runtime.keeper, self.describe)
        self._progress = ProgressWriter(self._attempts, self.options.progress, refresher)
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Task[None] | None = None

    @property
    def active(self) -> int:
        return len(self._running)

    def describe(self) -> WorkerInfo:
        return WorkerInfo(
            self.name,
            socket.gethostname(),
            os.getpid(),
            VERSION,
            sorted(self._pipelines),
            self.options.concurrency,
            self.active,
            self._runtime.times.ttl,
        )

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._runtime.keeper.start()
        await self._registration.begin()
        loops = {f"lane {name}": claimer.run for name, claimer in self._claimers.items()}
        loops |= {
            "progress": self._progress.run,
            "interventions": self._watch_interventions,
        }
        self._tasks += [self._runtime.supervisor.start(name, loops[name]) for name in loops]
        self._tasks.append(asyncio.create_task(self._stop_when_failed(), name="failure"))
        self._runtime.local_workers.add(self._on_submission)

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, let steps under way end within `grace`, then hand all unfinished runs
        over: at most `STOP_TIMEOUT` later, also those whose code does not end."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(
                self._stop(self.options.grace if grace is None else grace)
            )
        await asyncio.shield(self._stopping)

    async def _stop(self, grace: float) -> None:
        self._runtime.local_workers.remove(self._on_submission)
        self._capacity.close()
        for running in self._running.values():
            running.execution.attempt.graph.drain()
        if self._running and grace > 0:
            await asyncio.wait(self._run_tasks(), timeout=grace)
        # What claims under way still bring is handed over, too.
        await _within(CLAIMS_TIMEOUT, [claimer.finish() for claimer in self._claimers.values()])
        for running in self._running.values():
            running.interrupt()
        if self._running:
            await asyncio.wait(self._run_tasks(), timeout=INTERRUPT_TIMEOUT)
        send = self._runtime.committer.send
        unending = [running for running in self._running.values() if running.is_executing]
        await _within(HAND_OVER_TIMEOUT, [send(self._abandon(running)) for running in unending])
        await end(task for task in self._tasks if task is not asyncio.current_task())
        self._tasks.clear()
        if self._refresher is not None:
            await self._refresher.stop()
        await self._runtime.committer.drain()
        await self._registration.end()

    async def _stop_when_failed(self) -> None:
        """Others go on with the runs of a worker that can't work any more."""
        with suppress(Exception):  # it was logged
            await self._runtime.supervisor.failed()
        self._stopping = self._stopping or asyncio.create_task(self._stop(0.0))

    def hand_over_from_outside(self, timeout: float) -> int:
        """Hand all runs over from another thread, because something blocks the event loop. How many
        there were. Raises what the store raises, and TimeoutError."""
        handed_over = [self._abandon(running) for running in list(self._running.values())]
        if handed_over:
            self._runtime.keeper.apply(handed_over, timeout)
        return len(handed_over)

    def _abandon(self, running: _Running) -> Settle:
        """Hand a run over although its code still runs: from here on it can write nothing."""
        attempt = running.execution.attempt
        settle = running.execution.hand_over()
        attempt.gate.lease.forfeit()
        self._runtime.keeper.drop(attempt.gate.lease)
        log_abandoned(attempt)
        return settle

    def lose(self, run: str) -> None:
        """Somebody in this process cancelled or paused the run: stop working on it now."""
        for lease in self._running:
            if lease.subject == run:
                lease.lose()

    def _attempts(self) -> list[Attempt]:
        return [running.execution.attempt for running in self._running.values()]

    def _run_tasks(self) -> list[asyncio.Task[None]]:
        return [running.task for running in self._running.values() if running.task is not None]

    def _on_submission(self, lane: str) -> None:
        if lane in self._claimers:
            self._claimers[lane].claim_early()

    # --- executing --------------------------------------------------------------------------------

    def _begin(self, claimed: Claimed, trusted_until: float) -> None:
        pipeline = self._pipelines[claimed.pipeline]
        lease = Lease(
            claimed.run, claimed.epoch, trusted_until, self._runtime.clock, self._on_lease_lost
        )
        plan = self._plans[pipeline.name]
        inputs = self._capacity.inputs
        execution = Execution(claimed, pipeline, plan, lease, self._runtime, inputs)
        if self._capacity.closed:
            execution.attempt.graph.drain()
        running = self._running[lease] = _Running(execution)
        running.task = self._loop.create_task(self._execute(running))
        self._runtime.keeper.keep(lease)

    async def _execute(self, running: _Running) -> None:
        running.is_executing = True
        attempt = running.execution.attempt
        fifo = attempt.pipeline.lane.order == "fifo"
        log_started(
            attempt,
            self.name,
            active=1 if fifo else self.active,
            concurrency=1 if fifo else self.options.concurrency,
        )
        if (meter := self._runtime.meter) is not None:
            meter.started()
        started = self._runtime.clock.monotonic()
        try:
            try:
                settle = await self._execute_traced(running)
            finally:
                running.is_executing = False
                self._capacity.release()
            if settle is not None:
                await self._settle(attempt, settle, started)
            else:
                await self._note_loss(attempt)
        except Exception:
            log.exception("run %s: the worker failed", attempt.claimed.run)
        finally:
            self._end(attempt)

    async def _execute_traced(self, running: _Running) -> Settle | None:
        runtime, execution = self._runtime, running.execution
        if runtime.tracer is None:
            return await execution.execute()
        origin = await origin_of(runtime, execution.attempt.claimed.run)
        with run_span(runtime.tracer, execution.attempt, origin) as span:
            settle = await execution.execute()
            note_outcome(span, settle)
            return settle

    async def _settle(self, attempt: Attempt, settle: Settle, started: float) -> None:
        seconds = self._runtime.clock.monotonic() - started
        try:
            settle = await attempt.gate.settle(settle)
        except LeaseLost:
            await self._note_loss(attempt)
            return
        log_settled(attempt, settle, seconds)
        self._count(attempt, settle, seconds)
        if (ending := settled_ending(settle)) is not None:
            self._runtime.waiters.resolve(settle.run, ending)
            self._runtime.job_secrets.drop(settle.run)
        elif settle.outcome == "retry" and settle.delay > 0:
            self._claimers[attempt.claimed.lane].expect_retry(settle.delay)

    def _count(self, attempt: Attempt, settle: Settle, seconds: float) -> None:
        if (meter := self._runtime.meter) is None:
            return
        run = attempt.claimed
        meter.settled(run.tenant, run.pipeline, settle, seconds)
        is_over = settle.outcome in ("succeeded", "failed")
        if is_over and attempt.pipeline.unique and (accepted := time_of(run.run)) is not None:
            held = max(0.0, self._runtime.clock.now() - accepted)
            meter.lock_released(run.tenant, run.pipeline, held)

    def _end(self, attempt: Attempt) -> None:
        self._running.pop(attempt.gate.lease, None)
        self._runtime.keeper.drop(attempt.gate.lease)
        self._capacity.remove_input(len(attempt.claimed.input))

    # --- leases -----------------------------------------------------------------------------------

    async def _note_loss(self, attempt: Attempt) -> None:
        """Say why, and keep it beside the run if the interpreter was blocked: others count that."""
        lease, blocked = attempt.gate.lease, None
        if self._runtime.clock.monotonic() >= lease.trusted_until:
            await asyncio.sleep(BLOCK_NOTICE)
            blocked = self._runtime.keeper.recent_block()
        log_lease_lost(attempt, blocked)
        if blocked is not None:
            await lease_losses.note(self._runtime.records, lease.subject, blocked)

    def _on_lease_lost(self, lease: Lease) -> None:
        """Called by the keeper, in its thread."""
        with suppress(RuntimeError):  # the loop is closed: the process is about to end
            self._loop.call_soon_threadsafe(self._interrupt, lease)

    def _interrupt(self, lease: Lease) -> None:
        if (running := self._running.get(lease)) is not None:
            running.interrupt()

    async def _watch_interventions(self) -> None:
        """When somebody takes a lease away, by a cancel or a pause, it may be one of ours: ask the
        store at once. Without notifications the next renewal tells."""
        change, keeper = 0, self._runtime.keeper
        while True:
            change = await self._runtime.store.wait(
                change, self._runtime.times.renew, wake=Wake.HOLDERS
            )
            keeper.note_intervention()
            await asyncio.sleep(INTERVENTION_INTERVAL)


async def _within(timeout: float, awaitables: Sequence[Awaitable[Any]]) -> None:
    """Wait for all of them, and no longer than that."""
    if awaitables:
        await asyncio.wait(
            [asyncio.ensure_future(awaitable) for awaitable in awaitables], timeout=timeout
        )
