"""The durable call: a user's function is called, and its result is stored before it counts.

    fingerprint → reuse what is stored, or quarantine it → execute, with retries → check the result
    → offload it if it is large → checkpoint

Steps (`StepCall`) and items (`ItemCall`, for `ctx.map` and `ctx.step`) are durable calls. They
differ in how the function is called, how a failure leaves, and where the checkpoint goes."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import msgspec

from holdfast.engine.attempt import Attempt
from holdfast.engine.failures import TryLater, describe, ended_by, error_info, is_from_outside
from holdfast.engine.interpreter import note_end
from holdfast.engine.journal import Result
from holdfast.engine.worker_log import log_retry
from holdfast.errors import Damaged, InvalidInput, Permanent, Stop, Unwritable
from holdfast.model.checkpoint import Checkpoint, checksum, is_outdated
from holdfast.model.codec import Codec
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.duration import humanise
from holdfast.model.retry import is_retryable
from holdfast.model.run import StepRecord
from holdfast.model.step import Step

WAIT_IN_PLACE = 60.0
"""Up to this many seconds a retry is waited for with the lease held; longer ones give the run back
to the queue."""

_encode = msgspec.json.Encoder().encode


class DurableCall:
    """One call under a name: a step (`key == ""`) or an item of it. The `record` counts its
    tries."""

    __slots__ = (
        "_attempt",
        "_codec",
        "_fingerprint",
        "_key",
        "_max_attempts",
        "_record",
        "_step",
        "is_reused",
    )

    def __init__(
        self,
        attempt: Attempt,
        step: Step,
        key: str,
        codec: Codec,
        fingerprint: str,
        record: StepRecord,
        max_attempts: int,
    ) -> None:
        self._attempt = attempt
        self._step = step
        self._key = key
        self._codec = codec
        self._fingerprint = fingerprint
        self.is_reused = False
        """Whether the stored result was taken."""
        self._record = record
        self._max_attempts = max_attempts

    async def run(self) -> Result:
        """The stored result, if it answers the same question, or that of a new execution."""
        checkpoint = self._attempt.journal.stored.get((self._step.name, self._key))
        if checkpoint is not None and (result := await self._reuse(checkpoint)) is not None:
            return result
        self._begin()
        text, value = await self._execute()
        return await self._save(text, value)

    @property
    def step_name(self) -> str:
        return self._step.name

    # --- what steps and items do differently ------------------------------------------------------

    def _begin(self) -> None:
        """It is going to be executed."""

    async def _call(self) -> Any:
        """Call the function."""
        raise NotImplementedError

    def _is_outdated(self, checkpoint: Checkpoint) -> bool:
        """Whether the stored result answers another question."""
        return is_outdated(checkpoint, self._codec.schema, self._fingerprint)

    async def _accept(self, checkpoint: Checkpoint, text: str) -> str | None:
        """Pass a reused result on. Why that is impossible, if it is."""
        raise NotImplementedError

    def _note(self, error: Exception) -> None:
        """A try has failed."""

    def _postpone(self, later: TryLater) -> None:
        """Something inside the call wants to be tried later: may raise that it is too late."""

    def _give_up(self, error: Exception) -> NoReturn:
        """The last try has failed."""
        raise error

    async def _wait(self, delay: float) -> None:
        await asyncio.sleep(delay)

    def _complete(self) -> None:
        """Fill in the record: the result is there."""
        raise NotImplementedError

    def _defer(self, checkpoint: SaveCheckpoint) -> bool:
        """Whether the checkpoint is written later, together with something else."""
        return False

    def _publish(self, checkpoint: SaveCheckpoint, text: str) -> None:
        """The checkpoint is durable."""

    # --- reusing ----------------------------------------------------------------------------------

    async def _reuse(self, checkpoint: Checkpoint) -> Result | None:
        """The stored result, if it is sound and still the answer to the same question."""
        gate = self._attempt.gate
        if self._is_outdated(checkpoint):
            if not self._key:
                gate.log(
                    "info",
                    self._step.name,
                    "the stored result belongs to other code, inputs or items: executed anew",
                )
            return None
        try:
            text = await self._attempt.runtime.payloads.result(checkpoint)
            value = self._codec.decode(text)
            reason = await self._accept(checkpoint, text)
        except (Damaged, InvalidInput) as error:
            reason = str(error)
        else:
            if reason is None:
                self._count_reuse()
                return Result(checkpoint.value, checkpoint.checksum, value)
        await gate.quarantine(self._step.name, self._key, reason)
        return None

    def _count_reuse(self) -> None:
        self.is_reused = True
        meter = self._attempt.runtime.meter
        if meter is not None and not self._key:
            meter.step_reused(self._attempt.claimed.pipeline, self._step.name)

    # --- executing --------------------------------------------------------------------------------

    async def _execute(self) -> tuple[str, Any]:
        """The result as JSON and as a value, after as many tries as are allowed."""
        task = asyncio.current_task()
        while True:
            self._record.attempts += 1
            try:
                try:
                    value = await self._call()
                finally:
                    note_end(self._step.name)
                return self._checked(value)
            except Stop:
                self._record.attempts -= 1  # it did nothing wrong
                raise
            except TryLater as later:
                self._postpone(later)
                raise
            except Exception as error:
                await self._before_next_try(error)
            except BaseException as error:
                if is_from_outside(error, task):
                    self._record.attempts -= 1
                    raise
                await self._before_next_try(ended_by(error))

    def _checked(self, value: Any) -> tuple[str, Any]:
        """The value as it will be read back: what does not survive that is an error now, not after
        a crash."""
        try:
            text = self._codec.encode(value)
            return text, self._codec.decode(text)
        except InvalidInput as error:
            subject = "it" if self._key else "the step"
            raise Permanent(
                f"what {subject} returned does not fit its declared type: {error}"
            ) from error

    async def _before_next_try(self, error: Exception) -> None:
        tries = self._record.attempts
        self._note(error)
        if not is_retryable(error) or tries >= self._max_attempts:
            self._give_up(error)
        delay = self._step.retry.delay(tries, error)
        if delay > WAIT_IN_PLACE:
            info = error_info(error, self._step.name, self._key or None)
            raise TryLater(delay, info) from error
        self._log_retry(tries, delay, describe(error))
        await self._wait(delay)
        await self._attempt.gate.confirm()

    def _log_retry(self, tries: int, delay: float, reason: str) -> None:
        """In the run's log, and in the program's."""
        step, key = self._step.name, self._key
        self._attempt.gate.log(
            "warning",
            step,
            f"attempt {tries} failed, next in {humanise(delay)}: {reason}",
            {"key": key} if key else None,
        )
        name = f"{step}[{key}]" if key else step
        log_retry(self._attempt, name, f"{tries} of {self._max_attempts}", delay, reason)

    # --- saving -----------------------------------------------------------------------------------

    async def _save(self, text: str, value: Any) -> Result:
        payloads, stored = self._attempt.runtime.payloads, text
        if not payloads.fits_inline(text):
            stored = await payloads.offload(text, self._attempt.folder(self._step.name))
        self._complete()
        checkpoint = self._checkpoint(stored, checksum(text), self._codec.schema)
        if not self._defer(checkpoint):
            await self._persist(checkpoint)
            self._publish(checkpoint, text)
        return Result(stored, checkpoint.checksum, value)

    async def _persist(self, checkpoint: SaveCheckpoint) -> None:
        try:
            await self._attempt.gate.persist(checkpoint)
        except Unwritable as error:
            self._note(error)
            self._give_up(error)

    def _checkpoint(
        self, stored: str, value_checksum: str, schema: str, skipped: bool = False
    ) -> SaveCheckpoint:
        gate = self._attempt.gate
        return SaveCheckpoint(
            gate.run,
            gate.epoch,
            self._step.name,
            self._key,
            stored,
            value_checksum,
            schema,
            self._fingerprint,
            _encode(self._record).decode(),
            skipped,
        )
