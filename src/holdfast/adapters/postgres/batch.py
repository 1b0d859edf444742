"""Native commands as one JSON value for the server's function `apply`, and its answer as their
replies. `0008_apply.sql` says what the value holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import astuple, replace

from holdfast.adapters.arranging import Group
from holdfast.adapters.decisions import DECIDED, UNDECIDED
from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command
from holdfast.model.machine.attempts import LOG_LIMIT

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_answers = msgspec.json.Decoder(list[Raw]).decode
_claimed = msgspec.json.Decoder(list[c.Claimed]).decode

KINDS: dict[type, str] = {
    c.Submit: "submit",
    c.Claim: "claim",
    c.Renew: "renew",
    c.SaveCheckpoint: "save_checkpoints",
    c.SaveProgress: "save_progress",
    c.LogLine: "append_logs",
    c.Settle: "succeed",
    c.Acquire: "acquire",
    c.RenewLocks: "renew_locks",
    c.ReleaseLock: "release",
}
"""The functions of native commands."""

MAY_REPEAT = ("save_checkpoints", "succeed")
"""The server refuses these if a checkpoint is there already: then they are decided here."""


def kind_of(command: Command[Any]) -> str:
    """The function that applies a command, or `DECIDED`."""
    match command:
        case c.Submit(unique=True):
            return DECIDED
        case c.Settle() if command.outcome != "succeeded" or (command.last and command.last.key):
            return DECIDED
    return KINDS.get(type(command), DECIDED)


def kind_without_repeats(command: Command[Any]) -> str:
    """The same, when something may be repeated."""
    kind = kind_of(command)
    return DECIDED if kind in MAY_REPEAT else kind


def envelope(groups: Sequence[Group[str]]) -> dict[str, Any]:
    """The parts of a batch, and the names of what they change, which the server locks in one order
    for everybody."""
    names: dict[str, set[str]] = {"lanes": set(), "runs": set(), "locks": set()}
    for group in groups:
        for command in group.commands:
            _collect(command, names)
    parts = [[group.kind, *_payload(group)] for group in groups]
    return {"parts": parts, **{kind: list(some) for kind, some in names.items() if some}}


def _collect(command: Command[Any], names: dict[str, set[str]]) -> None:
    match command:
        case c.Submit():
            names["lanes"].add(command.lane)
        case c.Claim(token=str()):
            names["locks"].add(f"lane:{command.lane}")
        case c.Claim():
            pass
        case _:
            for kind, name in command.subjects or ():
                names[f"{kind}s"].add(name)


def sealed(value: dict[str, Any]) -> bytes:
    return seal(encode(value))


def _payload(group: Group[str]) -> list[Any]:
    first = group.commands[0]
    match group.kind:
        case "claim":
            worker = encode(first.worker).decode()
            more = {"worker_as_json": worker, "examined": c.EXAMINED}
            return [{**msgspec.structs.asdict(first), **more}]
        case "renew" | "renew_locks":
            return [first.held, first.ttl]
        case "submit":
            return [[submission(command) for command in group.commands]]
        case "append_logs":
            return [group.commands, LOG_LIMIT]
        case "acquire" | "release":
            return [[astuple(command) for command in group.commands]]
    return [group.commands]


def submission(command: c.Submit) -> c.Submit:
    """With its attributes as the text that is stored: in an object that the server would make a
    text of, U+0000 is lost."""
    if not command.attributes:
        return command
    return replace(command, attributes=encode(command.attributes).decode())


def unpack(answer: bytes) -> list[Raw]:
    """The answers of a batch's parts."""
    return _answers(unseal(answer))


# --- replies --------------------------------------------------------------------------------------


def replies(group: Group[str], raw: Raw) -> list[Any]:
    return REPLIES[group.kind](group.commands, raw)


def _with_refused(
    commands: Sequence[Any], raw: Raw, reply: Callable[[Any], Any], refusal: Any
) -> list[Any]:
    answers = [reply(command) for command in commands]
    for index in _decode(raw):
        answers[index] = refusal
    return answers


def _submitted(commands: list[c.Submit], raw: Raw) -> list[Any]:
    """What is answered if an id or a key is taken has to be looked up."""
    return _with_refused(
        commands, raw, lambda command: c.Submitted(command.id, True, "queued"), UNDECIDED
    )


def _fenced(commands: list[Any], raw: Raw) -> list[Any]:
    return _with_refused(commands, raw, lambda _: None, STALE)


def _released(commands: list[c.ReleaseLock], raw: Raw) -> list[Any]:
    return _with_refused(commands, raw, lambda _: True, False)


def _acquired(commands: list[c.Acquire], raw: Raw) -> list[Any]:
    return [c.Acquired(*row) if len(row) == 1 else c.Held(*row) for row in _decode(raw)]


def _lost(commands: list[c.Renew | c.RenewLocks], raw: Raw) -> list[Any]:
    return [[commands[0].held[index] for index in _decode(raw)]]


REPLIES: dict[str, Callable[[list[Any], Raw], list[Any]]] = {
    "submit": _submitted,
    "claim": lambda _, raw: [_claimed(raw)],
    "renew": _lost,
    "save_checkpoints": _fenced,
    "save_progress": _fenced,
    "append_logs": _fenced,
    "succeed": _fenced,
    "acquire": _acquired,
    "renew_locks": _lost,
    "release": _released,
}
