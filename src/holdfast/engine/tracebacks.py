"""Tracebacks, fit to be stored and shown: of bounded length, without the engine's own frames,
without secrets, and with escapes for what is no text (the name of a file may be anything)."""

from __future__ import annotations

import logging
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Any

from holdfast.model.limits import storable
from holdfast.model.secrecy import masked

MAX_LENGTH = 8 * 1024
"""Characters that are kept: the innermost frames, which come last."""
MAX_MESSAGE = 2000
"""Characters of the error's message that are kept."""
LONGEST = 100_000
"""Characters that are looked at for secrets. What is kept is much less, so that no secret is cut in
two and missed."""

LEFT_OUT = "… earlier frames are left out\n"

_ENGINE = Path(__file__).parent
_INTERNAL = (f"{_ENGINE}/", f"{_ENGINE.parent / 'model'}/")


def traceback_text(error: BaseException) -> str | None:
    """Where an error came from, its causes included; None when all of that is inside the engine."""
    formatted = TracebackException.from_exception(error)
    if not _remove_internal_frames(formatted):
        return None
    lines = list(formatted.format())
    if formatted.exceptions is None:  # else its message stands above the errors of its group
        message = list(formatted.format_exception_only())
        lines[-len(message) :] = [_shortened("".join(message).rstrip())]
    return _bounded(masked(storable("".join(lines)[-LONGEST:])).rstrip())


def message_text(message: str) -> str:
    """An error's message without secrets, and not too long."""
    return _shortened(masked(storable(message[:LONGEST])))


def log_error(
    log: logging.Logger,
    message: str,
    arguments: tuple[Any, ...],
    traceback: str | None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Log at ERROR with a stored traceback, which every formatter of Python's logging prints below
    the message."""
    if log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(
            log.name, logging.ERROR, __file__, 0, message, arguments, None, extra=extra
        )
        record.exc_text = traceback
        log.handle(record)


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " …"


def _remove_internal_frames(formatted: TracebackException, visited: set[int] | None = None) -> bool:
    """Whether any frames are left, in the error or in what caused it."""
    visited = visited if visited is not None else set()
    if id(formatted) in visited:
        return False
    visited.add(id(formatted))
    frames = [
        # Without columns: the marks below a line would take a third of the space.
        (frame.filename, frame.lineno or 0, frame.name, frame.line)
        for frame in formatted.stack
        if not frame.filename.startswith(_INTERNAL)
    ]
    formatted.stack = StackSummary.from_list(frames)
    related = [formatted.__cause__, formatted.__context__, *(formatted.exceptions or [])]
    left = [_remove_internal_frames(other, visited) for other in related if other is not None]
    return bool(frames) or any(left)


def _bounded(text: str) -> str:
    if len(text) <= MAX_LENGTH:
        return text
    tail = text[len(LEFT_OUT) - MAX_LENGTH :]
    return LEFT_OUT + tail.partition("\n")[2]
