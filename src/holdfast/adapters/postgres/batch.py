"""Native commands as one JSON value for the server's function `apply`, and its answer as their
replies. `07_apply.sql` says what the value holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace

from holdfast.adapters.arranging import Group
from holdfast.adapters.decisions import DECIDED, UNDECIDED
from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command
from holdfast.model.machine.attempts import LOG_LIMIT

encode = msgspec.json.Encoder().encode
_answers = msgspec.json.Decoder(list[Raw]).decode
_numbers = msgspec.json.Decoder(list[int]).decode
_claimed = msgspec.json.Decoder(list[c.Claimed]).decode

KINDS: dict[type, str] = {
    c.Submit: "submit",
    c.Claim: "claim",
    c.Renew: "renew",
    c.SaveCheckpoint: "save_checkpoints",
    c.SaveProgress: "save_progress",
    c.LogLine: "append_logs",
    c.Settle: "succeed",
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
    locked: dict[str, set[str]] = {"lanes": set(), "runs": set(), "names": set()}
    for group in groups:
        match group.kind:
            case "submit":
                locked["lanes"].update(command.lane for command in group.commands)
            case "claim":
                leads = [command.lane for command in group.commands if command.token is not None]
                locked["names"].update(f"lock lane:{lane}" for lane in leads)
            case _:
                subjects = [subject for command in group.commands for subject in command.subjects]
                locked["runs"].update(run for _, run in subjects)
    parts = [[group.kind, *_payload(group)] for group in groups]
    return {"parts": parts, **some(locked)}


def some(locked: dict[str, set[str]]) -> dict[str, list[str]]:
    """Without the kinds of which nothing is locked: the server looks for none then."""
    return {kind: list(names) for kind, names in locked.items() if names}


def sealed(value: dict[str, Any]) -> bytes:
    return seal(encode(value))


def _payload(group: Group[str]) -> list[Any]:
    first = group.commands[0]
    match group.kind:
        case "claim":
            limit = min(first.limit, c.EXAMINED)
            return [{**asdict(first), "limit": limit, "examined": c.EXAMINED}]
        case "renew":
            return [first.held, first.ttl]
        case "submit":
            return [[submission(command) for command in group.commands]]
        case "append_logs":
            return [group.commands, LOG_LIMIT]
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


def replies(group: Group[str], raw: Raw) -> list[Any]:
    """For all but a claim the server answers the numbers of the commands that took effect."""
    commands = group.commands
    if group.kind == "claim":
        return [_claimed(raw)]
    accepted = set(_numbers(raw))
    match group.kind:
        case "renew":
            return [[pair for n, pair in enumerate(commands[0].held, 1) if n not in accepted]]
        case "submit":
            # Whose the id or the key is, where it is taken, has to be looked up.
            return [
                c.Submitted(command.id, True, "queued") if n in accepted else UNDECIDED
                for n, command in enumerate(commands, 1)
            ]
    return [None if n in accepted else STALE for n in range(1, len(commands) + 1)]
