"""Native commands as the arguments of the script `batch`, and its answer as their replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.adapters.decisions import DECIDED, UNDECIDED
from holdfast.adapters.redis.codec import decode, pack
from holdfast.errors import Unwritable
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command
from holdfast.model.machine.attempts import LOG_LIMIT

NATIVE = "native"

_NAMES: dict[type, bytes] = {
    kind: pack(kind.__name__)
    for kind in (
        c.Submit, c.Claim, c.Renew, c.SaveCheckpoint, c.SaveProgress, c.LogLine, c.Settle,
        c.Acquire, c.RenewLocks, c.ReleaseLock,
    )
}  # fmt: skip


def kind_of(command: Command[Any]) -> str:
    """Whether the server has a function for a command, or it is decided here."""
    match command:
        case c.Submit(unique=True):
            return DECIDED
        case c.Settle() if command.outcome != "succeeded":
            return DECIDED
    return NATIVE if type(command) in _NAMES else DECIDED


def encode(commands: Sequence[Command[Any]]) -> list[bytes]:
    """Each is its name and then its fields, one after another: an array without its first byte."""
    return [_NAMES[type(command)] + pack(_fields(command))[1:] for command in commands]


def _fields(command: Command[Any]) -> Any:
    match command:
        case c.Claim():
            named = {name: getattr(command, name) for name in command.__struct_fields__}
            return ({**named, "examined": c.EXAMINED},)
        case c.LogLine():
            line = (command.level, command.step, command.message, command.fields)
            return (command.run, command.epoch, *line, LOG_LIMIT)
        case c.Settle():
            ended = (command.result, command.progress, command.execution_ms)
            return (command.run, command.epoch, *ended, command.checksum, command.last)
        case c.Renew() | c.RenewLocks():
            return (command.held, command.ttl)
        case c.Acquire():
            return (command.name, command.token, command.owner, command.ttl)
        case c.ReleaseLock():
            return (command.name, command.token)
    return command


def replies(commands: Sequence[Command[Any]], answer: bytes) -> list[Any]:
    return [
        REPLIES[type(command)](command, row) if type(row) is not dict else failure(row)
        for command, row in zip(commands, decode(answer), strict=True)
    ]


def failure(row: dict[str, str]) -> Unwritable:
    """What is answered for a command that the script could not apply."""
    return Unwritable(f"it can't be stored: {row['failed']}")


def _fenced(command: Any, holds: bool) -> Any:
    return None if holds else STALE


def _pairs(command: Any, rows: Any) -> list[tuple[Any, Any]]:
    return [(name, mark) for name, mark in rows]


def _submitted(command: c.Submit, is_new: bool) -> Any:
    """What is answered if an id or a key is taken has to be looked up."""
    return c.Submitted(command.id, True, "queued") if is_new else UNDECIDED


def _acquired(command: c.Acquire, answer: Any) -> c.Acquired | c.Held:
    return (
        c.Acquired(answer)
        if isinstance(answer, int)
        else c.Held(answer[0], float(answer[1]), answer[2])
    )


REPLIES: dict[type, Callable[[Any, Any], Any]] = {
    c.Submit: _submitted,
    c.Claim: lambda _, answer: [c.Claimed(*row) for row in answer],
    c.Renew: _pairs,
    c.SaveCheckpoint: _fenced,
    c.SaveProgress: _fenced,
    c.LogLine: _fenced,
    c.Settle: _fenced,
    c.Acquire: _acquired,
    c.RenewLocks: _pairs,
    c.ReleaseLock: lambda _, answer: answer,
}
