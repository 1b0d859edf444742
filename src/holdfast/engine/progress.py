"""What people see of unfinished runs while they go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from holdfast.engine.attempt import Attempt
from holdfast.engine.document_writing import Refresher

log = logging.getLogger("holdfast.worker")


class ProgressWriter:
    """Writes the progress of a worker's runs from time to time, if it has changed, also to the
    documents that show it. A run whose progress can't be written costs nobody else theirs."""

    def __init__(
        self,
        attempts: Callable[[], Iterable[Attempt]],
        interval: float,
        refresher: Refresher | None = None,
    ) -> None:
        self._attempts = attempts
        self._interval = interval
        self._refresher = refresher
        self._written: dict[str, str | None] = {}
        """By run; None: it could not be read."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            self.write()

    def write(self) -> None:
        before, self._written = self._written, {}
        for attempt in list(self._attempts()):
            run = attempt.gate.run
            progress = self._written[run] = self._read(attempt, run in before, before.get(run))
            if progress is None or progress == before.get(run):
                continue
            if attempt.gate.lease.trusted and not attempt.over:
                self._show(attempt, progress)

    def _show(self, attempt: Attempt, progress: str) -> None:
        if self._refresher is not None and self._refresher.concerns(attempt):
            self._refresher.refresh(attempt, progress)
        else:
            attempt.gate.show_progress(progress)

    def _read(self, attempt: Attempt, is_known: bool, before: str | None) -> str | None:
        try:
            return attempt.journal.progress_text()
        except Exception as error:  # a value of the user's that can't be encoded
            if not is_known or before is not None:  # said once
                log.warning(
                    "run %s of %s: its progress can't be written: %s: %s",
                    attempt.claimed.run,
                    attempt.claimed.pipeline,
                    type(error).__name__,
                    error,
                )
            return None
