"""The run's log: kept with the run, and passed on to Python's logging."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from holdfast.engine.gate import Gate

logger = logging.getLogger("holdfast.run")


class RunLog:
    """Writes lines for one step or item; with a loop, from a thread of its own."""

    def __init__(
        self, gate: Gate, step: str, key: str, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._gate = gate
        self._step = step
        self._key = key
        self._loop = loop

    def for_thread(self, loop: asyncio.AbstractEventLoop) -> RunLog:
        return RunLog(self._gate, self._step, self._key, loop)

    def debug(self, message: str, **fields: Any) -> None:
        self._write("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._write("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._write("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._write("error", message, fields)

    def _write(self, level: str, message: str, fields: dict[str, Any]) -> None:
        if self._key:
            fields = {"key": self._key, **fields}
        logger.log(
            logging.getLevelName(level.upper()),
            "%s %s: %s",
            self._gate.run,
            self._step,
            message,
            extra={"fields": fields},
        )
        if self._loop is None:
            self._gate.log(level, self._step, message, fields)
        else:
            self._loop.call_soon_threadsafe(self._gate.log, level, self._step, message, fields)
