"""The gate between an attempt and the store: whatever an attempt writes passes here, under its
lease."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.errors import (
    CheckpointsCorrupt,
    ConfigurationError,
    LeaseLost,
    StoreUnavailable,
    Unwritable,
)
from holdfast.model.commands import (
    FencedCommand,
    LogLine,
    Quarantine,
    R,
    SaveProgress,
    Settle,
    Stale,
)
from holdfast.model.limits import storable
from holdfast.model.run import ErrorInfo

RETRY_INTERVAL = 0.25
"""Between two tries to write while the store is away and the lease is still trusted, in seconds."""

_encode = msgspec.json.Encoder().encode


class Gate:
    """Writes for one attempt, while its lease is trusted.

    Steps and items persist their checkpoints and log through it, the worker persists the outcome.
    """

    __slots__ = (
        "_committer",
        "_journal",
        "_max_failures",
        "_meter",
        "_on_execute",
        "epoch",
        "lease",
        "run",
    )

    def __init__(self, lease: Lease, runtime: Runtime, journal: Journal, max_failures: int) -> None:
        self.lease = lease
        self.run = lease.subject
        self.epoch = lease.epoch
        self._committer = runtime.committer
        self._on_execute = runtime.on_execute
        self._journal = journal
        self._meter = runtime.meter
        self._max_failures = max_failures

    def before_call(self, step: str, key: str) -> None:
        """The last look before user code runs: only under a trusted lease."""
        self.lease.check()
        if self._on_execute is not None:
            self._on_execute(self.run, step, key)

    async def persist(self, command: FencedCommand[R | Stale]) -> R:
        """Apply a command durably. While the store is away, try again until the lease can't be
        trusted any more."""
        while True:
            self.lease.check()
            try:
                reply = await self._committer.send(command)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            except ConfigurationError as error:
                # The store can't be used any more, as when its file is damaged. That is nothing the
                # run did: it goes on elsewhere, or when the store is repaired.
                self.lease.forfeit()
                raise LeaseLost(f"run {self.run} is left alone: {error}") from error
            if isinstance(reply, Stale):
                self.lease.forfeit()
                raise LeaseLost(f"run {self.run}: epoch {self.epoch} was refused, another has it")
            return reply

    async def settle(self, settle: Settle) -> Settle:
        """End the attempt. If no store can write how it ended, the run fails for that reason, in
        plain words. What was written."""
        try:
            await self.persist(settle)
        except Unwritable as error:
            info = ErrorInfo(type(error).__name__, storable(f"how the run ended: {error}"))
            settle = Settle(self.run, self.epoch, "failed", error=_encode(info).decode())
            await self.persist(settle)
        return settle

    async def confirm(self) -> None:
        """Ask the store before a retry, which may come long after the last write: it does not start
        after a cancel is acknowledged, whether or not notifications arrive."""
        await self.persist(SaveProgress(self.run, self.epoch, self._journal.progress_text()))

    def show_progress(self, progress: str) -> None:
        """Replace what people see of the unfinished part, sometime soon."""
        self._committer.post(SaveProgress(self.run, self.epoch, progress))

    async def quarantine(self, step: str, key: str, reason: str) -> None:
        """Put a bad checkpoint aside; too many of them end the run."""
        reason = storable(reason)
        self.log("warning", step, f"stored result not reused: {reason}", {"key": key})
        count = await self.persist(Quarantine(self.run, self.epoch, step, key, reason))
        if self._meter is not None:
            self._meter.checkpoint_quarantined(step)
        self._journal.remove(step, key)
        if count >= self._max_failures:
            raise CheckpointsCorrupt(
                f"stored results of step {step!r} failed validation {count} times, last because "
                f"{reason}. Check the disk and who else writes to the store; then run the pipeline "
                "again as a new run"
            )

    def log(
        self, level: str, step: str, message: str, fields: dict[str, Any] | None = None
    ) -> None:
        """Add a line to the run's log, sometime soon."""
        text = _fields_text(fields) if fields else "{}"
        line = LogLine(self.run, self.epoch, level, step, storable(message), text)
        self._committer.post(line)


def _fields_text(fields: dict[str, Any]) -> str:
    """As JSON; values that JSON does not know are shown as Python does."""
    try:
        return _encode(fields).decode()
    except Exception:  # numbers without end, objects, texts that are none: whatever users log
        return _encode(
            {storable(name): _display_text(value) for name, value in fields.items()}
        ).decode()


def _display_text(value: Any) -> str:
    try:
        return storable(repr(value))
    except Exception as error:
        return f"it can't be shown: {type(error).__name__}"
