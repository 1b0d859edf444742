"""A batch of commands as one JSON value for the server's function `apply`, and its answer as the
commands' replies.

Commands of one kind go together into one statement wherever nobody can tell the difference;
`0009_apply.sql` says what the envelope holds. Batches of one command that a run waits for have
functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import astuple

from holdfast.adapters.postgres.arranging import Part, arrange
from holdfast.adapters.postgres.naming import named
from holdfast.adapters.postgres.text import parameter, seal, unseal
from holdfast.model import commands as c
from holdfast.model.commands import STALE, Command, Reply
from holdfast.model.event import Event
from holdfast.model.run import ErrorInfo

MAX_LOG_LINES = 10_000

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
_answers = msgspec.json.Decoder(list[Raw]).decode
_claimed = msgspec.json.Decoder(list[c.Claimed]).decode
_events = msgspec.json.Decoder(list[tuple[str, int, str, float, str, str, str, int]]).decode
_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode
_error = msgspec.json.Decoder(ErrorInfo).decode

LOUD = frozenset(
    [
        "submit",
        "submit_alone",
        "succeed",
        "end_attempts",
        "cancel",
        "pause",
        "resume",
        "sweep",
        "release",
        "force_release",
        "discard",
    ]
)
"""Parts that may give somebody something to do. An attempt that fails must not ring: two who wait
for one lock would wake each other for ever."""

NEWS = frozenset(["succeed"])
"""Those of them that leave no work, but in a fifo lane."""

UNSURE = frozenset(["sweep", "release", "force_release", "discard"])
"""Those of them that ring only if they found something."""


def batch_of(commands: Sequence[Command]) -> Batch | Lone:
    """The way to the server and back that suits these commands."""
    if len(commands) == 1 and (kind := _alone(commands[0])) is not None:
        return Lone(commands, kind)
    return Batch(commands)


class Call(NamedTuple):
    """A statement, by its name, and what it is given."""

    statement: str
    parameters: Sequence[bytes | None]


class Batch:
    """Commands on their way to the server and back."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._size = len(commands)
        self.parts = arrange(commands)
        loud = {part.kind for part in self.parts if part.kind in LOUD}
        self.loud = bool(loud)
        self.sure = not loud <= UNSURE
        self.only_news = loud <= NEWS

    def call(self, envelope: dict[str, Any], *, prepared: bool) -> Call:
        """What is sent; `envelope` is what the client adds, `prepared` whether the statement can
        be."""
        return Call("apply", [self.sealed(envelope)])

    def sealed(self, envelope: dict[str, Any]) -> bytes:
        """What `apply` is given."""
        envelope |= named(self.parts)
        envelope["parts"] = [_payload(part) for part in self.parts]
        return seal(encode(envelope))

    def replies(self, answer: bytes) -> list[Reply]:
        replies: list[Reply] = [None] * self._size
        for part, raw in zip(self.parts, _answers(unseal(answer)), strict=True):
            if read := MANY.get(part.kind):
                for place, reply in zip(part.places, read(part.commands, raw), strict=True):
                    replies[place] = reply
            else:
                replies[part.places[0]] = ONE[part.kind](part.commands[0], raw)
        return replies


class Lone:
    """A command that is the only one of its batch and has a statement of its own, as
    `0011_one_at_a_time.sql` says."""

    def __init__(self, commands: Sequence[Command], kind: str) -> None:
        self._commands = list(commands)
        self._kind = kind
        self.loud = self.sure = kind in LOUD
        self.only_news = kind in NEWS

    def call(self, envelope: dict[str, Any], *, prepared: bool) -> Call:
        command = self._commands[0]
        if prepared and self._kind == "submit":
            fields = astuple(command)[:-1] + tuple(map(envelope.get, ENVELOPE))
            return Call("submit_at_once", [parameter(field) for field in fields])
        return Call(LONE[self._kind], [seal(encode(command)), encode(envelope)])

    def replies(self, answer: bytes) -> list[Reply]:
        return MANY[self._kind](self._commands, Raw(unseal(answer)))


LONE = {"submit": "lone_submit", "save_checkpoints": "lone_checkpoint", "succeed": "lone_success"}
"""The statement for a lone command, by its kind."""

ENVELOPE = ("wait", "ring", "sync", "wall", "mono")
"""What of an envelope a statement is given that takes no JSON, in this order."""


def _alone(command: Command) -> str | None:
    """The kind of a command that has a statement of its own, else None."""
    match command:
        case c.SaveCheckpoint():
            return "save_checkpoints"
        case c.Settle(outcome="succeeded"):
            return "succeed"
        case c.Submit(unique=False, checkpoints=[]):
            return "submit"
    return None


def _payload(part: Part) -> list[Any]:
    first = part.commands[0]
    match part.kind:
        case "save_checkpoints" | "save_progress" | "succeed" | "acquire" | "release":
            return [part.kind, part.commands]
        case "submit":
            inherits = any(command.checkpoints for command in part.commands)
            if (
                len(part.commands) > 1
                and not inherits
                and all(command.key is None for command in part.commands)
            ):
                return ["submit_new", _columns(part.commands)]
            return [part.kind, part.commands, inherits]
        case "append_logs":
            return [part.kind, part.commands, MAX_LOG_LINES]
        case "end_attempts":
            return [part.kind, [_ending(command) for command in part.commands]]
        case "renew" | "renew_locks":
            return [part.kind, first.held, first.ttl]
        case "bury":
            return [
                part.kind,
                {**msgspec.structs.asdict(first), "attributes": encode(first.attributes).decode()},
            ]
    return [part.kind, first]


def _columns(commands: list[c.Submit]) -> list[list[Any]]:
    """What many have in common is said once."""
    kinds: dict[tuple[Any, ...], int] = {}
    of_each = [
        kinds.setdefault(
            (s.tenant, s.pipeline, s.lane, s.priority, s.delay, s.max_attempts, s.parent),
            len(kinds) + 1,
        )
        for s in commands
    ]
    columns = [
        [s.id for s in commands],
        [s.input for s in commands],
        [s.fingerprint for s in commands],
    ]
    return [list(kinds), *columns, of_each if len(kinds) > 1 else []]


def _ending(command: c.Settle) -> dict[str, Any]:
    error = _error(command.error) if command.error else ErrorInfo("Unknown", "")
    return {**msgspec.structs.asdict(command), "why": f"{error.name}: {error.message}"}


# --- answers --------------------------------------------------------------------------------------


def _fenced(commands: list[Any], raw: Raw) -> list[Reply]:
    replies: list[Reply] = [None] * len(commands)
    for place in decode(raw):
        replies[place] = STALE
    return replies


def _submitted(commands: list[c.Submit], raw: Raw) -> list[Reply]:
    replies: list[Reply] = [c.Submitted(command.id, True, "queued") for command in commands]
    for place, run, created, state, conflict in decode(raw):
        replies[place] = c.Submitted(run, created, state, conflict)
    return replies


def _acquired(commands: list[c.Acquire], raw: Raw) -> list[Reply]:
    return [c.Acquired(*found) if len(found) == 1 else c.Held(*found) for found in decode(raw)]


def _released(commands: list[c.ReleaseLock], raw: Raw) -> list[Reply]:
    replies: list[Reply] = [False] * len(commands)
    for place in decode(raw):
        replies[place] = True
    return replies


def _lost(command: c.Renew | c.RenewLocks, raw: Raw) -> Reply:
    return [command.held[place] for place in decode(raw)]


def _as_it_is(command: Command, raw: Raw) -> Reply:
    return decode(raw)


def _refusal(command: Command, raw: Raw) -> Reply:
    refused = decode(raw)
    return None if refused is None else c.Refused(*refused)


def _quarantined(command: Command, raw: Raw) -> Reply:
    count = decode(raw)
    return STALE if count is None else count


MANY: dict[str, Callable[[list[Any], Raw], list[Reply]]] = {
    "submit": _submitted,
    "submit_alone": lambda _, raw: [c.Submitted(*decode(raw))],
    "save_checkpoints": _fenced,
    "save_progress": _fenced,
    "append_logs": _fenced,
    "succeed": _fenced,
    "end_attempts": _fenced,
    "acquire": _acquired,
    "release": _released,
}
"""How the answer to many commands is read."""

ONE: dict[str, Callable[[Any, Raw], Reply]] = {
    "claim": lambda _, raw: _claimed(raw),
    "renew": _lost,
    "put_aside": _quarantined,
    "cancel": _refusal,
    "pause": _refusal,
    "resume": _refusal,
    "sweep": lambda _, raw: _pairs(raw),
    "prune": lambda _, raw: _pairs(raw),
    "define_lane": _as_it_is,
    "renew_locks": _lost,
    "force_release": _as_it_is,
    "bury": _as_it_is,
    "mark_redriven": _as_it_is,
    "discard": _as_it_is,
    "read_outbox": lambda _, raw: [Event(*row) for row in _events(raw)],
    "confirm_outbox": _as_it_is,
}
"""How the answer to one command is read."""
