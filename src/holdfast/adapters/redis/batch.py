"""Native commands as the arguments of the script `batch`, and its answer as their replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import asdict

from holdfast.adapters.decisions import DECIDED, UNDECIDED
from holdfast.adapters.redis.codec import decode, pack
from holdfast.adapters.redis.server import is_of_server
from holdfast.adapters.redis.wire import ReplyError
from holdfast.errors import Unwritable
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command
from holdfast.model.machine.attempts import LOG_LIMIT

NATIVE = "native"

_FUNCTIONS: dict[type, bytes] = {
    kind: pack(module) + pack(function)
    for kind, module, function in (
        (c.Submit, "submit", "submit"),
        (c.Claim, "claim", "claim"),
        (c.Renew, "attempts", "renew"),
        (c.SaveCheckpoint, "attempts", "save_checkpoint"),
        (c.SaveProgress, "attempts", "save_progress"),
        (c.LogLine, "attempts", "log_line"),
        (c.Settle, "settle", "succeed"),
        (c.Acquire, "locks", "acquire"),
        (c.RenewLocks, "locks", "renew"),
        (c.ReleaseLock, "locks", "release"),
    )
}
"""Where they are in `lua/`: a module and one of its functions."""


def kind_of(command: Command[Any]) -> str:
    """Whether the server has a function for a command, or it is decided here."""
    match command:
        case c.Submit(unique=True):
            return DECIDED
        case c.Settle() if command.outcome != "succeeded":
            return DECIDED
    return NATIVE if type(command) in _FUNCTIONS else DECIDED


def encode(commands: Sequence[Command[Any]]) -> list[bytes]:
    """Each is its function and then its fields, one after another: an array without its first
    byte."""
    return [_FUNCTIONS[type(command)] + pack(_fields(command))[1:] for command in commands]


def _fields(command: Command[Any]) -> Any:
    match command:
        case c.Claim():
            pipelines = dict.fromkeys(command.pipelines, True)
            return ({**asdict(command), "pipelines": pipelines, "examined": c.EXAMINED},)
        case c.LogLine():
            line = (command.level, command.step, command.message, command.fields)
            return (command.run, command.epoch, line, LOG_LIMIT)
        case c.Settle():
            texts = {"o": command.result, "h": command.checksum}
            if command.progress != "{}":
                texts["p"] = command.progress
            return (command.run, command.epoch, texts, command.execution_ms, command.last)
        case c.Renew() | c.RenewLocks():
            return (command.held, command.ttl)
        case c.Acquire():
            return (command.name, command.token, command.owner, command.ttl)
        case c.ReleaseLock():
            return (command.name, command.token)
    return command


def replies(commands: Sequence[Command[Any]], answers: Sequence[Any]) -> list[Any]:
    return [
        answer if isinstance(answer, Unwritable) else REPLIES[type(command)](command, answer)
        for command, answer in zip(commands, answers, strict=True)
    ]


def answers(packed: bytes) -> list[Any]:
    """Of a call of the script: `Unwritable` for a command that it could not apply. Raises
    ReplyError for one that failed because of the server: all others would, too."""
    return [_failure(row["failed"]) if type(row) is dict else row for row in decode(packed)]


def _failure(text: str) -> Unwritable:
    if is_of_server(text):
        raise ReplyError(text)
    return Unwritable(f"it can't be stored: {text}")


def raise_failures(answers: Sequence[Any]) -> Sequence[Any]:
    """The answers, if none is a failure."""
    for answer in answers:
        if isinstance(answer, Unwritable):
            raise answer
    return answers


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
