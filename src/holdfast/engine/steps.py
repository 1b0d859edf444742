"""One step: skip it, reuse what is stored, or execute it and keep the result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from holdfast.engine import threads
from holdfast.engine.blocking import BlockingStepContext
from holdfast.engine.context import StepContext
from holdfast.engine.feed import View
from holdfast.engine.results import Result, describe
from holdfast.engine.retrying import WAIT_IN_PLACE, Drained, StepFailed, TryLater
from holdfast.errors import InvalidInput, Permanent, StepTimeout, Stop
from holdfast.model.checkpoint import (
    Checkpoint,
    checksum,
    is_item,
    is_outdated,
    step_fingerprint,
    what_is_broken,
)
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.duration import humanise
from holdfast.model.items import Items
from holdfast.model.pipeline import Condition, Step
from holdfast.model.retry import is_retryable
from holdfast.model.run import ErrorInfo, StepRecord, StepStatus

if TYPE_CHECKING:
    from holdfast.engine.execution import Execution

SKIPPED = "skipped"
"""The schema of a skipped step's checkpoint."""

_encode = msgspec.json.Encoder().encode


class StepRunner:
    """Takes one step from its inputs to a durable result."""

    def __init__(self, execution: Execution, step: Step) -> None:
        self.execution = execution
        self.step = step
        self.clock = execution.runtime.clock
        before = execution.records.get(step.name)
        self.record = StepRecord(
            step.name,
            StepStatus.IN_PROGRESS,
            started=self.clock.now(),
            attempts=before.attempts if before else 0,
            epoch=execution.lease.epoch,
        )
        self.fingerprint = self._fingerprint()

    async def run(self) -> Result:
        self.execution.step_started(self.step, self.fingerprint)
        self._begun = self.clock.monotonic()
        if self.step.when is not None and not await self._wanted(self.step.when):
            return await self._skip()
        found = self.execution.stored.get((self.step.name, ""))
        if found is not None and (result := await self._reuse(found)) is not None:
            return result
        self.execution.records[self.step.name] = self.record
        return await self._keep(await self._attempt_until_done())

    def _fingerprint(self) -> str:
        execution, step = self.execution, self.step
        inputs: list[str] = []
        if step.needs:
            inputs += [execution.results[name].checksum for name in step.needs]
        if step.streams:
            inputs += [execution.fingerprints[name] for name in step.streams]
        if step.takes_input:
            inputs.append(execution.input_checksum)
        return step_fingerprint(execution.pipeline.name, step.name, step.version, *inputs)

    # --- skipping and reusing ---------------------------------------------------------------------

    async def _wanted(self, when: Condition) -> bool:
        arguments = {name: self.execution.results[name].value for name in when.needs}
        if when.takes_input:
            arguments[when.takes_input] = self.execution.input
        try:
            answer = when.function(**arguments)
            return bool(await answer if asyncio.iscoroutine(answer) else answer)
        except Exception as error:
            message = f"its condition (when=) failed: {describe(error)}"
            raise StepFailed(ErrorInfo(type(error).__name__, message, self.step.name)) from error

    async def _skip(self) -> Result:
        found = self.execution.stored.get((self.step.name, ""))
        if found is None or found.schema != SKIPPED:
            self.record.status = StepStatus.SKIPPED
            await self._save(self._checkpoint("null", checksum("null"), SKIPPED, skipped=True))
        return Result("null", SKIPPED, None)

    async def _save(self, checkpoint: SaveCheckpoint) -> None:
        """Now, or with the settlement if it is the last one."""
        if self.execution.is_last():
            self.execution.last = checkpoint
        else:
            await self.execution.persist(checkpoint)

    async def _reuse(self, found: Checkpoint) -> Result | None:
        """The stored result, if it is sound and still the answer to the same question."""
        if is_outdated(found, self.step.result.schema, self.fingerprint):
            self.execution.log(
                "info",
                self.step.name,
                "the stored result belongs to other code or inputs: executed anew",
            )
            return None
        text = await self.execution.runtime.payloads.fetch(found.value)
        reason = what_is_broken(found, text)
        if reason is None and text is not None:
            try:
                value = self.step.result.decode(text)
            except InvalidInput as error:
                reason = str(error)
            else:
                reason = await self._replay_items()
                if reason is None:
                    return Result(found.value, found.checksum, value)
        await self.execution.quarantine(self.step.name, "", reason or "it can't be read")
        return None

    async def _replay_items(self) -> str | None:
        """Give the stored items to those who stream them. Why that is impossible, if it is."""
        feed = self.execution.feeds.get(self.step.name)
        if feed is None:
            return None
        own = [
            c
            for (name, key), c in self.execution.stored.items()
            if name == self.step.name and is_item(key)
        ]
        texts: list[tuple[str, str]] = []
        for item in own:
            text = await self.execution.runtime.payloads.fetch(item.value)
            reason = what_is_broken(item, text)
            if reason is not None or text is None:
                await self.execution.quarantine(
                    self.step.name, item.key, reason or "it can't be read"
                )
                return f"its item {item.key!r} can't be used"
            texts.append((item.key, text))
        for key, text in texts:
            feed.put(key, text)
        return None

    # --- executing --------------------------------------------------------------------------------

    async def _attempt_until_done(self) -> str:
        """The result as JSON, after as many tries as the step allows."""
        while True:
            self.record.attempts += 1
            try:
                return self._checked(await self._call())
            except (asyncio.CancelledError, Stop):
                self.record.attempts -= 1  # it did nothing wrong
                raise
            except TryLater as later:  # an item wants to wait for long: a try of the step, so that there is an end
                if self.record.attempts >= self.step.max_attempts:
                    self._give_up(later.info)
                raise
            except Exception as error:
                await self._before_next_try(error)

    async def _before_next_try(self, error: Exception) -> None:
        info = ErrorInfo(type(error).__name__, describe(error), self.step.name)
        self.record.error = info
        if not is_retryable(error) or self.record.attempts >= self.step.max_attempts:
            self._give_up(info)
        delay = self.step.retry.delay(self.record.attempts, error)
        if delay > WAIT_IN_PLACE:
            raise TryLater(delay, info) from error
        self.execution.log(
            "warning",
            self.step.name,
            f"attempt {self.record.attempts} failed, next in {humanise(delay)}: {error}",
        )
        await self._wait(delay)
        await self.execution.confirm()

    def _give_up(self, info: ErrorInfo) -> NoReturn:
        self.record.error = info
        self.record.status = StepStatus.FAILED
        self.record.finished = self.clock.now()
        raise StepFailed(info)

    async def _wait(self, delay: float) -> None:
        try:
            async with asyncio.timeout(delay):
                await self.execution.drained.wait()
        except TimeoutError:
            return
        raise Drained("the worker stops; the next one goes on with this step")

    async def _call(self) -> Any:
        self.execution.about_to_execute(self.step.name, "")
        limit = self.execution.runtime.deadlines.within(self.step.timeout)
        try:
            with limit:
                if self.step.is_async and not self.step.takes_context:
                    return await self.step.function(**self._arguments(None))
                return await self._call_with_context(
                    StepContext(self.execution, self.step, self.record)
                )
        except TimeoutError as error:
            if not limit.expired:
                raise
            raise StepTimeout(
                f"it took longer than {humanise(self.step.timeout)} and was stopped"
            ) from error

    async def _call_with_context(self, context: StepContext) -> Any:
        try:
            if self.step.is_async:
                return await self.step.function(**self._arguments(context))
            blocking = BlockingStepContext(context, asyncio.get_running_loop())
            arguments = self._arguments(blocking)
            return await threads.call(
                lambda: self.step.function(**arguments), self.step.name, blocking.stop
            )
        finally:
            context.over = True

    def _arguments(self, context: Any) -> dict[str, Any]:
        step, execution = self.step, self.execution
        arguments: dict[str, Any] = {}
        for name in step.needs:
            arguments[name] = execution.results[name].value
        for name, codec in step.streams.items():
            arguments[name] = Items(View(execution.feeds[name], codec))
        if step.takes_input:
            arguments[step.takes_input] = execution.input
        if step.takes_context:
            arguments["ctx"] = context
        return arguments

    def _checked(self, value: Any) -> str:
        """The value as it will be read back: what does not survive that is an error now, not after
        a crash."""
        try:
            text = self.step.result.encode(value)
            self._value = self.step.result.decode(text)
        except InvalidInput as error:
            raise Permanent(
                f"what the step returned does not fit its declared type: {error}"
            ) from error
        return text

    # --- keeping ----------------------------------------------------------------------------------

    async def _keep(self, text: str) -> Result:
        stored = text
        if not self.execution.runtime.payloads.fits_inline(text):
            folder = f"{self.execution.folder}/{self.step.name}/{self.execution.lease.epoch}"
            stored = await self.execution.runtime.payloads.stow(text, folder)
        self.record.status = StepStatus.COMPLETED
        self.record.error = None
        sum_ = checksum(text)
        await self._save(self._checkpoint(stored, sum_, self.step.result.schema))
        return Result(stored, sum_, self._value)

    def _checkpoint(
        self, stored: str, sum_: str, schema: str, *, skipped: bool = False
    ) -> SaveCheckpoint:
        execution, record = self.execution, self.record
        record.finished = self.clock.now()
        record.duration = self.clock.monotonic() - self._begun
        return SaveCheckpoint(
            execution.claimed.run,
            execution.lease.epoch,
            self.step.name,
            "",
            stored,
            sum_,
            schema,
            self.fingerprint,
            _encode(record).decode(),
            skipped,
        )
