"""One attempt at one run: loads what is stored, executes what is missing, in dependency order,
concurrently."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any

import msgspec

from holdfast.engine.feed import Feed
from holdfast.engine.lease import Lease
from holdfast.engine.payloads import is_reference
from holdfast.engine.plan import Plan
from holdfast.engine.results import Result, recorded_usage
from holdfast.engine.retrying import Drained
from holdfast.engine.runtime import Runtime
from holdfast.engine.steps import StepRunner
from holdfast.errors import (
    CheckpointsCorrupt,
    InvalidInput,
    LeaseLost,
    Permanent,
    RunTimeout,
    StoreUnavailable,
)
from holdfast.model.checkpoint import MAX_VALIDATION_FAILURES, Checkpoint, checksum
from holdfast.model.commands import (
    Claimed,
    Command,
    LogLine,
    Quarantine,
    SaveCheckpoint,
    SaveProgress,
    Stale,
)
from holdfast.model.duration import humanise
from holdfast.model.pipeline import Pipeline, Step
from holdfast.model.run import Progress, StepRecord, StepStatus
from holdfast.model.usage import Usage

RETRY_PAUSE = 0.25
"""Between two tries to write while the store is away and the lease is still trusted."""

UNFINISHED = (StepStatus.IN_PROGRESS, StepStatus.FAILED)

_encode = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(StepRecord).decode
_decode_progress = msgspec.json.Decoder(Progress).decode


class Execution:
    """Executes a claimed run. `run()` returns when nothing is left to do or raises why it
    stopped."""

    def __init__(
        self, claimed: Claimed, pipeline: Pipeline[Any], plan: Plan, lease: Lease, runtime: Runtime
    ) -> None:
        self.claimed = claimed
        self.pipeline = pipeline
        self.lease = lease
        self.runtime = runtime
        self.input: Any = None
        self.input_checksum = ""
        self.stored: dict[tuple[str, str], Checkpoint] = {}
        self.results: dict[str, Result] = {}
        self.fingerprints: dict[str, str] = {}
        self.records: dict[str, StepRecord] = {}
        self.counted: set[tuple[str, str]] = set()
        self.wasted = Usage()
        self.uncounted: dict[str, Usage] = {}
        """What stored items cost that their step, begun anew, has not met again yet."""
        self.last: SaveCheckpoint | None = None
        self.feeds: dict[str, Feed] = {}
        self.draining = False
        self.begun = False
        """Whether its task has begun."""
        self.ended = False
        self.plan = plan
        self._finished_before: dict[str, StepRecord] = {}
        self._missing = dict(plan.missing)
        self._group: asyncio.TaskGroup | None = None

    @cached_property
    def drained(self) -> asyncio.Event:
        return asyncio.Event()

    @property
    def complete(self) -> bool:
        return len(self.results) == len(self.pipeline.steps)

    @property
    def folder(self) -> str:
        """Where this attempt's blobs go: nobody else writes there."""
        return f"{self.claimed.tenant}/{self.claimed.run}"

    async def run(self) -> None:
        """Execute until all steps have results, or the worker drains."""
        limit = self.runtime.deadlines.within(self.pipeline.timeout)
        try:
            with limit:
                text = self.claimed.input
                self._read_input(
                    await self.runtime.payloads.fetch(text) if is_reference(text) else text
                )
                if self.claimed.resumed:
                    await self._load_checkpoints()
                self._load_progress()
                if self.plan.is_chain:  # most pipelines: they need no group of tasks
                    await self._advance(self._spawn_all_but_one(self.plan.first))
                else:
                    await self._advance_together()
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise RunTimeout(
                f"the run took longer than {humanise(self.pipeline.timeout)} and was stopped; "
                f"raise the pipeline's timeout or resume the run: finished steps are kept"
            ) from error
        finally:
            self.ended = True

    def drain(self) -> None:
        """Start no further step; those under way may finish."""
        self.draining = True
        self.drained.set()

    # --- loading ----------------------------------------------------------------------------------

    def _read_input(self, text: str | None) -> None:
        if text is None:
            raise Permanent("the run's input is missing from the blob store; submit it again")
        try:
            self.input = self.pipeline.input.decode(text)
        except InvalidInput as error:
            raise Permanent(f"the stored input no longer fits the pipeline: {error}") from error
        self.input_checksum = checksum(text)

    async def _load_checkpoints(self) -> None:
        found = await self.runtime.store.checkpoints(self.claimed.run)
        self.stored = {(checkpoint.step, checkpoint.key): checkpoint for checkpoint in found}
        for checkpoint in found:
            if not checkpoint.key:
                self._finished_before[checkpoint.step] = _decode_record(checkpoint.record)
            elif (checkpoint.step, "") not in self.stored:
                spent = self.uncounted.get(checkpoint.step, Usage())
                self.uncounted[checkpoint.step] = spent + recorded_usage(checkpoint)

    def _load_progress(self) -> None:
        """Carry over what an earlier attempt counted: tries of unfinished steps, and money that
        left no result."""
        if self.claimed.progress == "{}":
            return
        before = _decode_progress(self.claimed.progress)
        self.wasted = before.wasted
        for name, record in before.steps.items():
            finished = self.stored.get((name, ""))
            if finished is not None and finished.epoch <= record.epoch:
                continue
            self.wasted = self.wasted + (record.usage - self._stored_usage(name, record.epoch))
            if finished is None and record.status is StepStatus.IN_PROGRESS:
                self.records[name] = StepRecord(name, StepStatus.PENDING, attempts=record.attempts)

    def _stored_usage(self, step: str, epoch: int) -> Usage:
        """What items consumed that were stored by attempts up to this one."""
        usage = Usage()
        for (name, key), checkpoint in self.stored.items():
            if name == step and key and checkpoint.epoch <= epoch:
                usage = usage + recorded_usage(checkpoint)
        return usage

    def step_records(self) -> dict[str, StepRecord]:
        """What is known about each step that has begun: from its checkpoint, or from this
        attempt."""
        return {**self._finished_before, **self.records}

    @property
    def spent(self) -> Usage:
        """What the run has consumed so far, in all its attempts."""
        known = [record.usage for record in self.step_records().values()]
        return sum([*known, *self.uncounted.values()], self.wasted)

    # --- executing --------------------------------------------------------------------------------

    async def _advance_together(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._advance(self._spawn_all_but_one(self.plan.first))

    async def _advance(self, name: str | None) -> None:
        """Execute a step, then one that it made ready, and so on; further ready ones get tasks of
        their own."""
        while name is not None:
            try:
                self.results[name] = await StepRunner(self, self.pipeline.steps[name]).run()
            except Drained:  # it waited for its next try: the others under way may still finish
                return
            if feed := self.feeds.get(name):
                feed.close()
            name = self._spawn_all_but_one(self._made_ready(self.plan.after_end[name]))

    def _spawn_all_but_one(self, ready: list[str]) -> str | None:
        if self.draining or not ready:
            return None
        for name in ready[1:]:
            self.spawn(name)
        return ready[0]

    def spawn(self, name: str) -> None:
        assert self._group is not None
        self._group.create_task(self._advance(name), name=f"{self.claimed.run}:{name}")

    def _made_ready(self, names: list[str]) -> list[str]:
        ready: list[str] = []
        for name in names:
            self._missing[name] -= 1
            if self._missing[name] == 0:
                ready.append(name)
        return ready

    def step_started(self, step: Step, fingerprint: str) -> None:
        """Let those begin that stream this step's items."""
        self.fingerprints[step.name] = fingerprint
        followers = self.plan.after_start[step.name]
        if not followers:
            return
        self.feeds[step.name] = Feed(step.name)
        for name in self._made_ready(followers):
            if not self.draining:
                self.spawn(name)

    def about_to_execute(self, step: str, key: str) -> None:
        """The last look before user code runs: only under a trusted lease."""
        self.lease.check()
        if self.runtime.on_execute is not None:
            self.runtime.on_execute(self.claimed.run, step, key)

    def is_last(self) -> bool:
        """Whether the step that ends now is the last one: its checkpoint then commits with the
        settlement."""
        return len(self.results) == len(self.pipeline.steps) - 1

    # --- writing ----------------------------------------------------------------------------------

    async def persist(self, command: Command) -> Any:
        """Write under the lease. While the store is away, try again until the lease can't be
        trusted any more."""
        while True:
            self.lease.check()
            try:
                reply = await self.runtime.committer.send(command)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_PAUSE)
                continue
            if isinstance(reply, Stale):
                self.lease.forfeit()
                raise LeaseLost(
                    f"run {self.claimed.run}: epoch {self.lease.epoch} was refused, another has it"
                )
            return reply

    async def confirm(self) -> None:
        """Ask the store before a retry: after a cancel is acknowledged, nothing further may start.

        Everything else starts right after a fenced write of its own run, which asks the same
        question."""
        await self.persist(SaveProgress(self.claimed.run, self.lease.epoch, self.progress_text()))

    async def quarantine(self, step: str, key: str, reason: str) -> None:
        """Put a bad checkpoint aside; too many of them end the run."""
        self.log("warning", step, f"stored result not reused: {reason}", {"key": key})
        count = await self.persist(
            Quarantine(self.claimed.run, self.lease.epoch, step, key, reason)
        )
        self._forget(step, key)
        if count >= MAX_VALIDATION_FAILURES:
            raise CheckpointsCorrupt(
                f"stored results of step {step!r} failed validation {count} times, last because "
                f"{reason}. Check the "
                f"disk and who else writes to the store; then run the pipeline again as a new run"
            )

    def _forget(self, step: str, key: str) -> None:
        """What a result cost that can't be used is wasted."""
        found = self.stored.pop((step, key), None)
        if not key:
            self._finished_before.pop(step, None)
        if found is not None:
            items = Usage() if key else self._stored_usage(step, found.epoch)
            self.wasted = self.wasted + (recorded_usage(found) - items)

    def log(
        self, level: str, step: str, message: str, fields: dict[str, Any] | None = None
    ) -> None:
        try:
            text = _encode(fields or {}).decode()
        except (TypeError, ValueError):
            text = _encode(
                {str(name): repr(value) for name, value in (fields or {}).items()}
            ).decode()
        message = message.encode("utf-8", "replace").decode()
        self.runtime.committer.post(
            LogLine(self.claimed.run, self.lease.epoch, level, step, message, text)
        )

    def progress_text(self) -> str:
        """The unfinished part, as JSON of `Progress`."""
        steps = {
            name: record for name, record in self.records.items() if record.status in UNFINISHED
        }
        if not steps and not self.wasted:
            return "{}"
        return _encode(Progress(steps, self.wasted)).decode()
