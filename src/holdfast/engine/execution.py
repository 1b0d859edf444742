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
    error_info,
    first_cause,
)
from holdfast.engine.graph import Plan
from holdfast.engine.lease import Lease
from holdfast.engine.payloads import is_reference
from holdfast.engine.runtime import Runtime
from holdfast.engine.step_call import StepCall
from holdfast.errors import InvalidInput, LeaseLost, Pause, Permanent, RunTimeout, StoreUnavailable
from holdfast.model.checkpoint import checksum
from holdfast.model.commands import Claimed, Outcome, Settle
from holdfast.model.duration import humanise
from holdfast.model.pipeline import Pipeline
from holdfast.model.retry import Retry, is_retryable
from holdfast.model.run import ErrorInfo

_encode = msgspec.json.Encoder().encode


class Execution:
    """One attempt at one run, from its claim to its outcome."""

    __slots__ = ("_group", "attempt")

    def __init__(
        self, claimed: Claimed, pipeline: Pipeline[Any], plan: Plan, lease: Lease, runtime: Runtime
    ) -> None:
        self.attempt = Attempt(claimed, pipeline, plan, lease, runtime)
        self._group: asyncio.TaskGroup | None = None

    async def execute(self) -> Settle | None:
        """Execute until all steps have results or something stops it, and say how to settle the
        run. None: the lease is lost, and nothing may be written. Cancelling the task hands the run
        over."""
        try:
            await self._execute_within_timeout()
        except asyncio.CancelledError as cancelled:
            return self._outcome(cancelled)
        except BaseExceptionGroup as group:
            return self._outcome(first_cause(group))
        except Exception as error:
            return self._outcome(error)
        return self._outcome(None)

    # --- executing --------------------------------------------------------------------------------

    async def _execute_within_timeout(self) -> None:
        attempt = self.attempt
        limit = attempt.runtime.deadlines.within(attempt.pipeline.timeout)
        try:
            with limit:
                await self._load()
                if attempt.plan.is_chain:  # most pipelines: they need no group of tasks
                    await self._advance(self._spawn_all_but_one(attempt.graph.first()))
                else:
                    await self._advance_together()
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise RunTimeout(
                f"the run took longer than {humanise(attempt.pipeline.timeout)} and was stopped; "
                f"raise the pipeline's timeout or resume the run: finished steps are kept"
            ) from error
        finally:
            attempt.over = True

    async def _load(self) -> None:
        runtime, claimed, journal = self.attempt.runtime, self.attempt.claimed, self.attempt.journal
        text: str | None = claimed.input
        if is_reference(claimed.input):
            text = await runtime.payloads.fetch(claimed.input)
        if text is None:
            raise Permanent("the run's input is missing from the blob store; submit it again")
        try:
            journal.input = self.attempt.pipeline.input.decode(text)
        except InvalidInput as error:
            raise Permanent(f"the stored input no longer fits the pipeline: {error}") from error
        journal.input_checksum = checksum(text)
        if claimed.resumed:
            journal.load_checkpoints(await runtime.store.checkpoints(claimed.run))
        journal.load_progress(claimed.progress)

    async def _advance_together(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._advance(self._spawn_all_but_one(self.attempt.graph.first()))

    async def _advance(self, name: str | None) -> None:
        """Execute a step, then one that it made ready, and so on; further ready ones get tasks of
        their own."""
        attempt = self.attempt
        while name is not None:
            step = attempt.pipeline.steps[name]
            call = StepCall(attempt, step)
            for follower in attempt.graph.start(name):
                self._spawn(follower)
            try:
                attempt.journal.results[name] = await (
                    call.run() if step.when is None else call.run_if_wanted(step.when)
                )
            except Drained:  # it waited for its next try: the others under way may still finish
                return
            name = self._spawn_all_but_one(attempt.graph.end(name))

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
                    "succeeded", result=attempt.journal.results[attempt.plan.result].stored
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
        result: str | None = None,
        reason: str | None = None,
        delay: float = 0,
        deferred: bool = False,
    ) -> Settle:
        gate, journal = self.attempt.gate, self.attempt.journal
        return Settle(
            gate.run,
            gate.epoch,
            outcome,
            result,
            _encode(error).decode() if error else None,
            reason,
            delay,
            journal.progress_text(),
            journal.last,
            deferred,
        )
