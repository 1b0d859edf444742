"""The run's log: kept with the run, and passed on to Python's logging."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.engine.context import StepContext

logger = logging.getLogger("holdfast.run")


class RunLog:
    """Writes lines for one step or item; with a loop, from a thread beside it."""

    def __init__(self, context: StepContext, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._context = context
        self._loop = loop

    def debug(self, message: str, **fields: Any) -> None:
        self._write("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._write("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._write("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._write("error", message, fields)

    def _write(self, level: str, message: str, fields: dict[str, Any]) -> None:
        context = self._context
        if context.key:
            fields = {"key": context.key, **fields}
        number = logging.getLevelName(level.upper())
        logger.log(
            number,
            "%s %s: %s",
            context.run_id,
            context.step_name,
            message,
            extra={"fields": fields},
        )
        if self._loop is None:
            context.execution.log(level, context.step_name, message, fields)
        else:
            self._loop.call_soon_threadsafe(
                lambda: context.execution.log(level, context.step_name, message, fields)
            )
