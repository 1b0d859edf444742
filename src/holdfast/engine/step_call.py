"""One step: skip it, reuse what is stored, or execute it and keep the result."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from msgspec.structs import replace

from holdfast.engine import threads
from holdfast.engine.attempt import Attempt
from holdfast.engine.blocking import BlockingStepContext
from holdfast.engine.context import StepContext
from holdfast.engine.durable_call import DurableCall
from holdfast.engine.failures import (
    Drained,
    StepFailed,
    TryLater,
    error_info,
    is_from_outside,
)
from holdfast.engine.feed import View
from holdfast.engine.journal import NOTHING, SKIPPED, Result, original_key
from holdfast.engine.worker_log import log_step
from holdfast.errors import Damaged, StepTimeout
from holdfast.model.checkpoint import Checkpoint, step_fingerprint
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.duration import humanise
from holdfast.model.items import Items
from holdfast.model.run import ErrorInfo, StepRecord, StepStatus
from holdfast.model.step import Condition, Step


class StepCall(DurableCall):
    """Takes one step from its inputs to a durable result. It may be skipped, it has a deadline, and
    the checkpoint of the last one commits with the outcome of the run."""

    __slots__ = ("_clock", "_started")

    def __init__(self, attempt: Attempt, step: Step) -> None:
        journal, self._clock = attempt.journal, attempt.runtime.clock
        record = StepRecord(
            step.name,
            StepStatus.IN_PROGRESS,
            started=self._clock.now(),
            attempts=journal.tries_before(step.name),
            epoch=attempt.gate.epoch,
        )
        fingerprint = journal.fingerprints[step.name] = _fingerprint(attempt, step)
        super().__init__(
            attempt, step, "", step.result, fingerprint, record, max_attempts=step.max_attempts
        )
        self._started = self._clock.monotonic()

    # --- skipping ---------------------------------------------------------------------------------

    async def perform(self) -> Result:
        """Run it or, if its condition says so, skip it."""
        when = self._step.when
        return (
            await self.run() if when is None or await self._is_wanted(when) else await self._skip()
        )

    async def _is_wanted(self, when: Condition) -> bool:
        journal = self._attempt.journal
        arguments = {name: journal.results[name].value for name in when.needs}
        if when.takes_input:
            arguments[when.takes_input] = journal.input
        task = asyncio.current_task()
        try:
            answer = when.function(**arguments)
            return bool(await answer if asyncio.iscoroutine(answer) else answer)
        except BaseException as error:
            if is_from_outside(error, task):
                raise
            info = error_info(error, self._step.name)
            message = f"its condition (when=) failed: {info.message}"
            raise StepFailed(replace(info, message=message)) from error

    async def _skip(self) -> Result:
        stored = self._attempt.journal.stored.get((self._step.name, ""))
        if stored is None or stored.schema != SKIPPED:
            self._measure(StepStatus.SKIPPED)
            checkpoint = self._checkpoint("null", NOTHING, SKIPPED, skipped=True)
            if not self._defer(checkpoint):
                await self._persist(checkpoint)
            log_step(self._attempt, self._step.name, "skipped")
        return Result("null", SKIPPED, None)

    # --- the steps of a durable call --------------------------------------------------------------

    def _begin(self) -> None:
        self._attempt.journal.begin(self._record)
        log_step(self._attempt, self._step.name, "started")

    async def _call(self) -> Any:
        step = self._step
        self._attempt.gate.before_call(step.name, "")
        limit = self._attempt.runtime.deadlines.within(step.timeout)
        try:
            with limit:
                if step.is_async and not step.takes_context:
                    return await step.function(**self._arguments(None))
                return await self._call_with_context(StepContext(self._attempt, step, self._record))
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise StepTimeout(
                f"it took longer than {humanise(step.timeout)} and was stopped"
            ) from error

    async def _call_with_context(self, context: StepContext) -> Any:
        function = self._step.function
        try:
            if self._step.is_async:
                return await function(**self._arguments(context))
            blocking = BlockingStepContext(context, asyncio.get_running_loop())
            arguments = self._arguments(blocking)
            return await threads.call(lambda: function(**arguments), self._step.name, blocking.stop)
        finally:
            context.over = True

    def _arguments(self, context: Any) -> dict[str, Any]:
        step, journal = self._step, self._attempt.journal
        arguments: dict[str, Any] = {}
        for name in step.needs:
            arguments[name] = journal.results[name].value
        for name, codec in step.streams.items():
            feed = self._attempt.graph.feed(name)
            assert feed is not None, "it is streamed, and has started"
            arguments[name] = Items(View(feed, codec))
        if step.takes_input:
            arguments[step.takes_input] = journal.input
        if step.takes_context:
            arguments["ctx"] = context
        return arguments

    def _is_outdated(self, checkpoint: Checkpoint) -> bool:
        """Also if others stream its items, and these are not all there any more."""
        if super()._is_outdated(checkpoint):
            return True
        attempt, name = self._attempt, self._step.name
        return attempt.graph.feed(name) is not None and not attempt.journal.has_items_of(checkpoint)

    async def _accept(self, checkpoint: Checkpoint, text: str) -> str | None:
        """Give the stored items to those who stream them. One that is damaged is put aside when
        its turn comes: not before the result of its step, which could be taken without it."""
        feed = self._attempt.graph.feed(self._step.name)
        if feed is None:
            return None
        texts: list[tuple[str, str]] = []
        for item in self._attempt.journal.items_of(self._step.name):
            try:
                item_text = await self._attempt.runtime.payloads.result(item)
            except Damaged as error:
                return f"its item {item.key!r} can't be used: {error}"
            texts.append((original_key(item), item_text))
        for key, item_text in texts:
            feed.put(key, item_text)
        return None

    def _note(self, error: Exception) -> None:
        self._record.error = error_info(error, self._step.name)

    def _postpone(self, later: TryLater) -> None:
        """An item wants to wait for long: that is a try of the step, so that there is an end."""
        if self._record.attempts >= self._max_attempts:
            self._fail(later.info)

    def _give_up(self, error: Exception) -> NoReturn:
        assert self._record.error is not None, "the error was noted"
        self._fail(self._record.error)

    def _fail(self, info: ErrorInfo) -> NoReturn:
        self._record.error = replace(info, traceback=None)  # it is in the error of the run
        self._record.status = StepStatus.FAILED
        self._record.finished = self._clock.now()
        raise StepFailed(info)

    async def _wait(self, delay: float) -> None:
        """Other steps may still finish when the worker stops meanwhile; this one leaves."""
        try:
            async with asyncio.timeout(delay):
                await self._attempt.graph.drained.wait()
        except TimeoutError:
            return
        raise Drained("the worker stops; the next one goes on with this step")

    def _complete(self) -> None:
        self._record.error = None
        if self._attempt.graph.feed(self._step.name) is not None:
            self._record.items = self._attempt.journal.items_digest(self._step.name)
        self._measure(StepStatus.COMPLETED)
        log_step(self._attempt, self._step.name, "completed")
        if (meter := self._attempt.runtime.meter) is not None:
            pipeline, seconds = self._attempt.claimed.pipeline, self._record.duration or 0.0
            meter.step_completed(pipeline, self._step.name, seconds)

    def _measure(self, status: StepStatus) -> None:
        self._record.status = status
        self._record.finished = self._clock.now()
        self._record.duration = self._clock.monotonic() - self._started

    def _defer(self, checkpoint: SaveCheckpoint) -> bool:
        """The last one is written with the outcome of the run."""
        journal = self._attempt.journal
        if len(journal.results) < len(self._attempt.pipeline.steps) - 1:
            return False
        journal.last = checkpoint
        return True


def _fingerprint(attempt: Attempt, step: Step) -> str:
    journal = attempt.journal
    inputs: list[str] = []
    if step.needs:
        inputs += [journal.results[name].checksum for name in step.needs]
    if step.streams:
        inputs += [journal.fingerprints[name] for name in step.streams]
    if step.takes_input:
        inputs.append(journal.input_checksum)
    return step_fingerprint(attempt.pipeline.name, step.name, step.version, *inputs)
