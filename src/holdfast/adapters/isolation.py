"""No command harms another: what can't be written is left out of its batch, alone.

Every command is looked at before it becomes part of a batch. Should a batch fail all the same, for
a reason that is not the server's, it is halved until the failing command is alone. All commands may
be repeated, so halves of a batch that was applied in part do no harm."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import MsgspecError

from holdfast.errors import Unwritable
from holdfast.model.commands import Command
from holdfast.model.limits import problem, storable

log = logging.getLogger("holdfast.store")

Apply = Callable[[Sequence[Command[Any]]], Awaitable[list[Any]]]

FAULTS = (
    Unwritable, ArithmeticError, AssertionError, AttributeError, LookupError, MsgspecError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What a command raises that can't be encoded, decided or written. Whatever else is raised is the
server's, and may pass."""


async def apply(commands: Sequence[Command[Any]], attempt: Apply) -> list[Any]:
    """Apply a batch with `attempt`, which applies all of it or raises. The answer to a command that
    no store can write is an `Unwritable`."""
    reasons = [problem(command) for command in commands]
    if not any(reasons):
        return await _apply(commands, attempt)
    writable = [c for c, reason in zip(commands, reasons, strict=True) if reason is None]
    replies = iter(await _apply(writable, attempt))
    return [next(replies) if reason is None else _unwritable(reason) for reason in reasons]


async def _apply(commands: Sequence[Command[Any]], attempt: Apply) -> list[Any]:
    try:
        return await attempt(commands)
    except FAULTS as error:
        if len(commands) == 1:
            return [_refused(commands[0], error)]
    half = len(commands) // 2
    return await _apply(commands[:half], attempt) + await _apply(commands[half:], attempt)


def _refused(command: Command[Any], error: Exception) -> Unwritable:
    if isinstance(error, Unwritable):
        return error
    kind, reason = type(command).__name__, storable(f"{type(error).__name__}: {error}"[:500])
    log.error("%s can't be written: %s", kind, reason, exc_info=error)
    return _unwritable(f"{kind}: {reason}")


def _unwritable(reason: str) -> Unwritable:
    return Unwritable(f"it can't be stored: {storable(reason)}")
