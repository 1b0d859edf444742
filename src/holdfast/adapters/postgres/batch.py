"""A batch of commands as one JSON value for the server's function `apply`, and its answer as the commands' replies.

Commands of one kind go together into one statement wherever nobody can tell the difference; `0009_apply.sql` says
what the envelope holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model.event import Event
from holdfast.model.run import ErrorInfo
from holdfast.ports import commands as c
from holdfast.ports.commands import STALE, Command, Reply

MAX_LOG_LINES = 10_000

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
_answers = msgspec.json.Decoder(list[Raw]).decode
_claimed = msgspec.json.Decoder(list[c.Claimed]).decode
_events = msgspec.json.Decoder(list[tuple[str, int, str, float, str, str, str, int]]).decode
_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode
_error = msgspec.json.Decoder(ErrorInfo).decode

TOGETHER = frozenset((c.Submit, c.SaveCheckpoint, c.SaveProgress, c.LogLine, c.Settle))
"""Commands of which one statement applies many."""

ASIDE = frozenset((c.Acquire, c.RenewLocks, c.ReleaseLock, c.ForceRelease, c.Bury, c.ConfirmOutbox))
"""Commands that have nothing to do with runs: those may be moved past them."""

LOUD = frozenset(
    [
        "submit",
        "succeed",
        "end_attempts",
        "cancel",
        "pause",
        "resume",
        "sweep",
        "release_lock",
        "force_release",
        "discard",
    ]
)
"""Parts that may give somebody something to do. An attempt that fails must not ring: two who wait for one lock would
wake each other for ever."""


class Part:
    """Commands that go into one statement, with their places in the batch."""

    __slots__ = ("commands", "kind", "places", "seen")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.commands: list[Any] = []
        self.places: list[int] = []
        self.seen: set[Any] = set()

    def add(self, place: int, command: Any) -> None:
        self.commands.append(command)
        self.places.append(place)


def arrange(commands: Sequence[Command]) -> list[Part]:
    """Collect commands of a kind, moving one forward only past commands that concern other runs."""
    parts: list[Part] = []
    current: dict[str, int] = {}
    last_touch: dict[str, int] = {}
    for place, command in enumerate(commands):
        if type(command) not in TOGETHER:
            if type(command) not in ASIDE:
                current.clear()
                last_touch.clear()
            parts.append(Part(ALONE[type(command)][0]))
            parts[-1].add(place, command)
            continue
        kind, run, identity = _concerns(command)
        index = current.get(kind)
        if index is None or index < last_touch.get(run, -1) or identity in parts[index].seen:
            index = current[kind] = len(parts)
            parts.append(Part(kind))
        last_touch[run] = index
        if identity is not None:
            parts[index].seen.add(identity)
        parts[index].add(place, command)
    return parts


def _concerns(command: Any) -> tuple[str, str, Any]:
    """The kind of a command's statement, its run, and what it must be alone with there (None: with nothing)."""
    match command:
        case c.SaveCheckpoint():
            return "save_checkpoints", command.run, (command.run, command.step, command.key)
        case c.Settle():
            return "succeed" if command.outcome == "succeeded" else "end_attempts", command.run, command.run
        case c.Submit():
            # A slot that two of one statement want would have to be given to the first.
            return ("submit_alone", command.id, "any") if command.unique else ("submit", command.id, None)
        case c.SaveProgress():
            return "save_progress", command.run, command.run
    return "append_logs", command.run, None


# --- the envelope -----------------------------------------------------------------------------------------------------


class Batch:
    """Commands on their way to the server and back."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._size = len(commands)
        self.parts = arrange(commands)
        self.loud = any(part.kind in LOUD for part in self.parts)

    def body(self, envelope: dict[str, Any]) -> bytes:
        """What `apply` is given; `envelope` is what the client adds."""
        envelope |= {name: found for name, found in _named(self.parts).items() if found}
        envelope["parts"] = [_payload(part) for part in self.parts]
        return seal(encode(envelope))

    def replies(self, answer: bytes) -> list[Reply]:
        replies: list[Reply] = [None] * self._size
        for part, raw in zip(self.parts, _answers(unseal(answer)), strict=True):
            if read := MANY.get(part.kind):
                for place, reply in zip(part.places, read(part.commands, raw), strict=True):
                    replies[place] = reply
            else:
                replies[part.places[0]] = ALONE[type(part.commands[0])][1](part.commands[0], raw)
        return replies


def _payload(part: Part) -> list[Any]:
    first = part.commands[0]
    match part.kind:
        case "save_checkpoints" | "save_progress" | "succeed":
            return [part.kind, part.commands]
        case "submit":
            return [part.kind, part.commands, any(command.checkpoints for command in part.commands)]
        case "append_logs":
            return [part.kind, part.commands, MAX_LOG_LINES]
        case "end_attempts":
            return [part.kind, [_ending(command) for command in part.commands]]
        case "renew" | "renew_locks":
            return [part.kind, first.held, first.ttl]
        case "bury":
            return [part.kind, {**msgspec.structs.asdict(first), "attributes": encode(first.attributes).decode()}]
    return [part.kind, first]


def _ending(command: c.Settle) -> dict[str, Any]:
    error = _error(command.error) if command.error else ErrorInfo("Unknown", "")
    return {**msgspec.structs.asdict(command), "why": f"{error.name}: {error.message}"}


def _named(parts: list[Part]) -> dict[str, Any]:
    """Everything that the parts name and the server has to lock before it begins."""
    found = Named()
    for part in parts:
        collect = COLLECT.get(type(part.commands[0]))
        if collect is not None:
            for command in part.commands:
                collect(found, command)
    return {name: list(getattr(found, name)) for name in Named.__slots__}


class Named:
    __slots__ = ("lanes", "locks", "new_locks", "resumes", "runs", "slots")

    def __init__(self) -> None:
        self.lanes: set[str] = set()
        self.slots: set[tuple[str, str]] = set()
        self.resumes: set[str] = set()
        self.runs: set[str] = set()
        self.new_locks: set[str] = set()
        self.locks: set[str] = set()

    def submit(self, command: c.Submit) -> None:
        self.lanes.add(command.lane)
        if command.unique:
            self.slots.add((command.tenant, command.pipeline))

    def run(self, command: Any) -> None:
        self.runs.add(command.run)

    def resume(self, command: c.Resume) -> None:
        self.runs.add(command.run)
        self.resumes.add(command.run)

    def held(self, command: c.Renew) -> None:
        self.runs.update([run for run, _ in command.held])

    def letter(self, command: c.Discard | c.MarkRedriven) -> None:
        if command.id.startswith("run:"):
            self.runs.add(command.id[len("run:") :])

    def lane(self, command: c.DefineLane) -> None:
        self.lanes.add(command.name)

    def claim(self, command: c.Claim) -> None:
        if command.token is not None:
            self.locks.add(f"lane:{command.lane}")

    def acquire(self, command: c.Acquire) -> None:
        self.new_locks.add(command.name)
        self.locks.add(command.name)

    def lock(self, command: c.ReleaseLock | c.ForceRelease) -> None:
        self.locks.add(command.name)

    def held_locks(self, command: c.RenewLocks) -> None:
        self.locks.update([name for name, _ in command.held])


COLLECT: dict[type, Callable[[Named, Any], None]] = {
    c.Submit: Named.submit,
    c.Claim: Named.claim,
    c.Renew: Named.held,
    c.SaveCheckpoint: Named.run,
    c.Quarantine: Named.run,
    c.SaveProgress: Named.run,
    c.LogLine: Named.run,
    c.Settle: Named.run,
    c.Cancel: Named.run,
    c.PauseRun: Named.run,
    c.Resume: Named.resume,
    c.DefineLane: Named.lane,
    c.Acquire: Named.acquire,
    c.RenewLocks: Named.held_locks,
    c.ReleaseLock: Named.lock,
    c.ForceRelease: Named.lock,
    c.MarkRedriven: Named.letter,
    c.Discard: Named.letter,
}


# --- answers ----------------------------------------------------------------------------------------------------------


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


def _lost(command: c.Renew | c.RenewLocks, raw: Raw) -> Reply:
    return [command.held[place] for place in decode(raw)]


def _as_it_is(command: Command, raw: Raw) -> Reply:
    return decode(raw)


def _refusal(command: Command, raw: Raw) -> Reply:
    refused = decode(raw)
    return None if refused is None else c.Refused(*refused)


def _acquired(command: Command, raw: Raw) -> Reply:
    found = decode(raw)
    return c.Acquired(*found) if len(found) == 1 else c.Held(*found)


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
}

ALONE: dict[type, tuple[str, Callable[[Any, Raw], Reply]]] = {
    c.Claim: ("claim", lambda _, raw: _claimed(raw)),
    c.Renew: ("renew", _lost),
    c.Quarantine: ("put_aside", _quarantined),
    c.Cancel: ("cancel", _refusal),
    c.PauseRun: ("pause", _refusal),
    c.Resume: ("resume", _refusal),
    c.Sweep: ("sweep", lambda _, raw: _pairs(raw)),
    c.Prune: ("prune", lambda _, raw: _pairs(raw)),
    c.DefineLane: ("define_lane", _as_it_is),
    c.Acquire: ("acquire", _acquired),
    c.RenewLocks: ("renew_locks", _lost),
    c.ReleaseLock: ("release_lock", _as_it_is),
    c.ForceRelease: ("force_release", _as_it_is),
    c.Bury: ("bury", _as_it_is),
    c.MarkRedriven: ("mark_redriven", _as_it_is),
    c.Discard: ("discard", _as_it_is),
    c.ReadOutbox: ("read_outbox", lambda _, raw: [Event(*row) for row in _events(raw)]),
    c.ConfirmOutbox: ("confirm_outbox", _as_it_is),
}
"""Commands applied one by one, rare or already about many runs: what they are called, and how their answer is read."""
