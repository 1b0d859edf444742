"""What a batch names and the server has to lock before it begins, in one order for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.adapters.postgres.arranging import Part
from holdfast.model import commands as c


class Named:
    """Names by what they are names of, as `0009_apply.sql` lists them."""

    __slots__ = ("lanes", "locks", "new_locks", "resumes", "runs", "slots")

    def __init__(self) -> None:
        self.lanes: set[str] = set()
        self.slots: set[tuple[str, str]] = set()
        self.resumes: set[str] = set()
        self.runs: set[str] = set()
        self.new_locks: set[str] = set()
        self.locks: set[str] = set()

    def submit(self, commands: list[c.Submit]) -> None:
        self.lanes.update([command.lane for command in commands])
        self.slots.update(
            [(command.tenant, command.pipeline) for command in commands if command.unique]
        )

    def run(self, commands: list[Any]) -> None:
        self.runs.update([command.run for command in commands])

    def resume(self, commands: list[c.Resume]) -> None:
        self.run(commands)
        self.resumes.update([command.run for command in commands])

    def held(self, commands: list[c.Renew]) -> None:
        self.runs.update([run for command in commands for run, _ in command.held])

    def letter(self, commands: list[c.Discard | c.MarkRedriven]) -> None:
        self.runs.update(
            [command.id[len("run:") :] for command in commands if command.id.startswith("run:")]
        )

    def lane(self, commands: list[c.DefineLane]) -> None:
        self.lanes.update([command.name for command in commands])

    def claim(self, commands: list[c.Claim]) -> None:
        self.locks.update(
            [f"lane:{command.lane}" for command in commands if command.token is not None]
        )

    def acquire(self, commands: list[c.Acquire]) -> None:
        self.new_locks.update([command.name for command in commands])
        self.locks.update(self.new_locks)

    def lock(self, commands: list[c.ReleaseLock | c.ForceRelease]) -> None:
        self.locks.update([command.name for command in commands])

    def held_locks(self, commands: list[c.RenewLocks]) -> None:
        self.locks.update([name for command in commands for name, _ in command.held])


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


def named(parts: list[Part]) -> dict[str, list[Any]]:
    """Everything that the parts name; nothing that is empty."""
    found = Named()
    for part in parts:
        if collect := COLLECT.get(type(part.commands[0])):
            collect(found, part.commands)
    return {name: list(names) for name in Named.__slots__ if (names := getattr(found, name))}
