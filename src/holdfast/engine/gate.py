"""The gate between an attempt and the store: whatever an attempt writes passes here, under its
lease."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.errors import CheckpointsCorrupt, LeaseLost, StoreUnavailable
from holdfast.model.checkpoint import MAX_VALIDATION_FAILURES
from holdfast.model.commands import Command, LogLine, Quarantine, SaveProgress, Stale

RETRY_INTERVAL = 0.25
"""Between two tries to write while the store is away and the lease is still trusted, in seconds."""

_encode = msgspec.json.Encoder().encode


class Gate:
    """Writes for one attempt, while its lease is trusted.

    Steps and items persist their checkpoints and log through it, the worker persists the outcome.
    """

    __slots__ = ("_committer", "_journal", "_on_execute", "epoch", "lease", "run")

    def __init__(self, lease: Lease, runtime: Runtime, journal: Journal) -> None:
        self.lease = lease
        self.run = lease.subject
        self.epoch = lease.epoch
        self._committer = runtime.committer
        self._on_execute = runtime.on_execute
        self._journal = journal

    def before_call(self, step: str, key: str) -> None:
        """The last look before user code runs: only under a trusted lease."""
        self.lease.check()
        if self._on_execute is not None:
            self._on_execute(self.run, step, key)

    async def persist(self, command: Command) -> Any:
        """Apply a command durably. While the store is away, try again until the lease can't be
        trusted any more."""
        while True:
            self.lease.check()
            try:
                reply = await self._committer.send(command)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            if isinstance(reply, Stale):
                self.lease.forfeit()
                raise LeaseLost(f"run {self.run}: epoch {self.epoch} was refused, another has it")
            return reply

    async def confirm(self) -> None:
        """Ask the store before a retry: after a cancel is acknowledged, nothing further may start.

        Everything else starts right after a fenced write of its own run, which asks the same
        question."""
        await self.persist(SaveProgress(self.run, self.epoch, self._journal.progress_text()))

    def show_progress(self, progress: str) -> None:
        """Replace what people see of the unfinished part, sometime soon."""
        self._committer.post(SaveProgress(self.run, self.epoch, progress))

    async def quarantine(self, step: str, key: str, reason: str) -> None:
        """Put a bad checkpoint aside; too many of them end the run."""
        self.log("warning", step, f"stored result not reused: {reason}", {"key": key})
        count = await self.persist(Quarantine(self.run, self.epoch, step, key, reason))
        self._journal.remove(step, key)
        if count >= MAX_VALIDATION_FAILURES:
            raise CheckpointsCorrupt(
                f"stored results of step {step!r} failed validation {count} times, last because "
                f"{reason}. Check the disk and who else writes to the store; then run the pipeline "
                "again as a new run"
            )

    def log(
        self, level: str, step: str, message: str, fields: dict[str, Any] | None = None
    ) -> None:
        """Add a line to the run's log, sometime soon."""
        try:
            text = _encode(fields or {}).decode()
        except (TypeError, ValueError):
            text = _encode(
                {str(name): repr(value) for name, value in (fields or {}).items()}
            ).decode()
        message = message.encode("utf-8", "replace").decode()
        self._committer.post(LogLine(self.run, self.epoch, level, step, message, text))
