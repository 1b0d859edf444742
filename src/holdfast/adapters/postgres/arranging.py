"""Which commands of a batch go into one statement together, without anybody being able to tell the
difference."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from holdfast.model import commands as c
from holdfast.model.commands import Command


class Part:
    """Commands that go into one statement, with their places in the batch."""

    __slots__ = ("commands", "kind", "places", "seen")

    def __init__(
        self, kind: str, commands: list[Any] | None = None, places: list[int] | None = None
    ) -> None:
        self.kind = kind
        self.commands = commands or []
        self.places = places or []
        self.seen: set[Any] = set()

    def add(self, place: int, command: Any) -> None:
        self.commands.append(command)
        self.places.append(place)


def arrange(commands: Sequence[Command]) -> list[Part]:
    """Collect commands of a kind, moving one forward only past commands that concern other runs and
    locks."""
    if _are_plain_submits(commands):  # as when thousands come at once: nothing has to be compared
        return [Part("submit", list(commands), list(range(len(commands))))]
    parts: list[Part] = []
    current: dict[str, int] = {}
    last_touch: dict[Hashable, int] = {}
    for place, command in enumerate(commands):
        concerns = TOGETHER.get(type(command))
        if concerns is None:
            if type(command) not in ASIDE:
                current.clear()
                last_touch.clear()
            parts.append(Part(ALONE[type(command)]))
            parts[-1].add(place, command)
            continue
        kind, subject, identity = concerns(command)
        index = current.get(kind)
        if index is None or index < last_touch.get(subject, -1) or identity in parts[index].seen:
            index = current[kind] = len(parts)
            parts.append(Part(kind))
        last_touch[subject] = index
        if identity is not None:
            parts[index].seen.add(identity)
        parts[index].add(place, command)
    return parts


def _are_plain_submits(commands: Sequence[Command]) -> bool:
    return all(isinstance(command, c.Submit) and not command.unique for command in commands)


Concerns = tuple[str, Hashable, Any]
"""The kind of a command's statement, its run or lock, and what it must be alone with there (None:
with nothing)."""


def _submit(command: c.Submit) -> Concerns:
    if command.unique:  # a slot that two of one statement want would have to be given to the first
        return "submit_alone", command.id, "any"
    return "submit", command.id, None


def _save_checkpoint(command: c.SaveCheckpoint) -> Concerns:
    return "save_checkpoints", command.run, (command.run, command.step, command.key)


def _save_progress(command: c.SaveProgress) -> Concerns:
    return "save_progress", command.run, command.run


def _log_line(command: c.LogLine) -> Concerns:
    return "append_logs", command.run, None


def _settle(command: c.Settle) -> Concerns:
    return "succeed" if command.outcome == "succeeded" else "end_attempts", command.run, command.run


def _acquire(command: c.Acquire) -> Concerns:
    return "acquire", ("lock", command.name), command.name


def _release(command: c.ReleaseLock) -> Concerns:
    return "release", ("lock", command.name), command.name


TOGETHER: dict[type, Callable[[Any], Concerns]] = {
    c.Submit: _submit,
    c.SaveCheckpoint: _save_checkpoint,
    c.SaveProgress: _save_progress,
    c.LogLine: _log_line,
    c.Settle: _settle,
    c.Acquire: _acquire,
    c.ReleaseLock: _release,
}
"""Commands of which one statement applies many."""

ALONE: dict[type, str] = {
    c.Claim: "claim",
    c.Renew: "renew",
    c.Quarantine: "put_aside",
    c.Cancel: "cancel",
    c.PauseRun: "pause",
    c.Resume: "resume",
    c.Sweep: "sweep",
    c.Prune: "prune",
    c.DefineLane: "define_lane",
    c.RenewLocks: "renew_locks",
    c.ForceRelease: "force_release",
    c.Bury: "bury",
    c.MarkRedriven: "mark_redriven",
    c.Discard: "discard",
    c.ReadOutbox: "read_outbox",
    c.ConfirmOutbox: "confirm_outbox",
}
"""Commands applied one by one, rare or already about many runs or locks."""

ASIDE = frozenset((c.Bury, c.ConfirmOutbox))
"""Commands that have nothing to do with runs and locks: others may be moved past them."""
