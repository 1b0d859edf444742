"""Executing a claimed run: load what is stored, execute what is missing, say how it ended.

Steps run in dependency order, concurrently. Whatever ends the attempt becomes one outcome:

all steps have results        succeeded
the worker drains             handover: queued at once, the attempt does not count
Pause                         paused
a step wants to wait long     retry after its delay
store out of reach            retry
a step failed for good        failed
LeaseLost                     nothing is written: the new holder goes on
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from holdfast.engine.attempt import Attempt
from holdfast.engine.failures import (
    Drained,
    StepFailed,
    TryLater,
    describe,
    ended_by,
    error_info,
    first_cause,
    is_from_outside,
)
from holdfast.engine.graph import Plan
from holdfast.engine.input_room import InputRoom
from holdfast.engine.journal import Result
from holdfast.engine.lease import Lease
from holdfast.engine.payloads import is_reference
from holdfast.engine.runtime import Runtime
from holdfast.engine.step_call import StepCall
from holdfast.engine.tracing import step_span
from holdfast.errors import (
    InvalidInput,
    LeaseLost,
    Pause,
    Permanent,
    RunTimeout,
    StoreUnavailable,
)
from holdfast.model.checkpoint import checksum
from holdfast.model.commands import Claimed, Outcome, Settle
from holdfast.model.duration import humanise
from holdfast.model.pipeline import Pipeline
from holdfast.model.retry import Retry, is_retryable
from holdfast.model.run import ErrorInfo

_encode = msgspec.json.Encoder().encode


class Execution:
    """One attempt at one run, from its claim to its outcome."""

    __slots__ = ("_group", "_held", "_inputs", "_started", "attempt")

    def __init__(
        self,
        claimed: Claimed,
        pipeline: Pipeline[Any],
        plan: Plan,
        lease: Lease,
        runtime: Runtime,
        inputs: InputRoom,
    ) -> None:
        self._inputs = inputs
        self._held: int | None = None
        """The size of the input, once it was let in."""
        self.attempt = Attempt(claimed, pipeline, plan, lease, runtime)
        self._group: asyncio.TaskGroup | None = None
        self._started = runtime.clock.monotonic()

    async def execute(self) -> Settle | None:
        """Execute until all steps have results or something stops it, and say how to settle the
        run. None: the lease is lost, and nothing may be written. Cancelling the task hands the run
        over."""
        task = asyncio.current_task()
        try:
            await self._execute_within_timeout()
        except asyncio.CancelledError as cancelled:
            return self._outcome(cancelled)
        except BaseExceptionGroup as group:
            return self._outcome(first_cause(group))
        except Exception as error:
            return self._outcome(error)
        except BaseException as error:  # of `timeout_for`, say: steps see to theirs themselves
            if is_from_outside(error, task):
                raise
            return self._outcome(ended_by(error, "run"))
        return self._outcome(None)

    def hand_over(self) -> Settle:
        """What hands the run over while its code still runs: that is told to end, and starts
        nothing further."""
        self.attempt.over = True
        return self._settle("handover")

    # --- executing --------------------------------------------------------------------------------

    async def _execute_within_timeout(self) -> None:
        attempt = self.attempt
        try:
            await self._load()
            timeout = attempt.pipeline.time_limit(attempt.journal.input)
            await self._execute_within(timeout)
        finally:
            attempt.over = True
            if self._held is not None:
                self._inputs.leave(self._held)

    async def _execute_within(self, timeout: float) -> None:
        attempt = self.attempt
        limit = attempt.runtime.deadlines.within(timeout)
        try:
            with limit:
                if attempt.plan.is_chain:  # most pipelines: they need no group of tasks
                    await self._advance(self._spawn_all_but_one(attempt.graph.first()))
                else:
                    await self._advance_together()
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise RunTimeout(
                f"the run took longer than {humanise(timeout)} and was stopped; "
                f"raise the pipeline's timeout or resume the run: finished steps are kept"
            ) from error

    async def _load(self) -> None:
        runtime, claimed, journal = self.attempt.runtime, self.attempt.claimed, self.attempt.journal
        text = await self._input()
        try:
            journal.input = self.attempt.pipeline.input.decode(text)
        except InvalidInput as error:
            raise Permanent(f"the stored input no longer fits the pipeline: {error}") from error
        journal.input_checksum = checksum(text)
        if claimed.resumed:
            unreadable = journal.load_checkpoints(await runtime.store.checkpoints(claimed.run))
            for checkpoint in unreadable:
                await self.attempt.gate.quarantine(
                    checkpoint.step, checkpoint.key, "its record can't be read"
                )
        if not journal.load_progress(claimed.progress):
            self.attempt.gate.log("warning", "", "what an earlier attempt counted can't be read")

    async def _input(self) -> str:
        """The text of the input, once the worker has room for it."""
        runtime, claimed = self.attempt.runtime, self.attempt.claimed

        async def read() -> str:
            return await runtime.payloads.input(
                claimed.run, claimed.pipeline, claimed.input, claimed.fingerprint
            )

        if is_reference(claimed.input):
            text, self._held = await self._inputs.load(read)
            return text
        text = await read()
        self._held = await self._inputs.enter(text)
        return text

    async def _advance_together(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._advance(self._spawn_all_but_one(self.attempt.graph.first()))

    async def _advance(self, name: str | None) -> None:
        """Execute a step, then one that it made ready, and so on; further ready ones get tasks of
        their own."""
        attempt = self.attempt
        while name is not None:
            call = StepCall(attempt, attempt.pipeline.steps[name])
            for follower in attempt.graph.start(name):
                self._spawn(follower)
            try:
                attempt.journal.results[name] = await self._run_step(call)
            except Drained:  # it waited for its next try: the others under way may still finish
                return
            name = self._spawn_all_but_one(attempt.graph.end(name))

    async def _run_step(self, call: StepCall) -> Result:
        if self.attempt.runtime.tracer is None:
            return await call.perform()
        with step_span(self.attempt, call.step_name) as span:
            result = await call.perform()
            span.set({"holdfast.step.reused": call.is_reused})
            return result

    def _spawn_all_but_one(self, ready: list[str]) -> str | None:
        if not ready:
            return None
        for name in ready[1:]:
            self._spawn(name)
        return ready[0]

    def _spawn(self, name: str) -> None:
        assert self._group is not None, "in a chain one step follows another"
        self._group.create_task(self._advance(name), name=f"{self.attempt.claimed.run}:{name}")

    # --- the outcome ------------------------------------------------------------------------------

    def _outcome(self, error: BaseException | None) -> Settle | None:
        """Whatever ended the attempt, as one command."""
        attempt, lease = self.attempt, self.attempt.gate.lease
        match error:
            case None if len(attempt.journal.results) == len(attempt.pipeline.steps):
                return self._settle(
                    "succeeded", result=attempt.journal.results[attempt.plan.result]
                )
            case LeaseLost():
                return None
            case asyncio.CancelledError() if lease.lost:
                return None
            case None | asyncio.CancelledError():
                return self._settle("handover")
            case Pause():
                return self._settle("paused", reason=describe(error))
            case StepFailed():
                return self._settle("failed", error.info)
            case TryLater():
                return self._settle("retry", error.info, delay=error.delay, deferred=True)
            case StoreUnavailable():
                delay = Retry().delay(attempt.claimed.attempt)
                return self._settle("retry", error_info(error), delay=delay)
            case _ if is_retryable(error):
                delay = Retry().delay(attempt.claimed.attempt, error)
                return self._settle("retry", error_info(error), delay=delay)
            case _:
                return self._settle("failed", error_info(error))

    def _settle(
        self,
        outcome: Outcome,
        error: ErrorInfo | None = None,
        *,
        result: Result | None = None,
        reason: str | None = None,
        delay: float = 0,
        deferred: bool = False,
    ) -> Settle:
        gate, journal = self.attempt.gate, self.attempt.journal
        return Settle(
            gate.run,
            gate.epoch,
            outcome,
            result.stored if result else None,
            _encode(error).decode() if error else None,
            reason,
            delay,
            journal.progress_text(),
            journal.last,
            deferred,
            round(1000 * (self.attempt.runtime.clock.monotonic() - self._started)),
            result.stored_checksum if result else None,
        )
