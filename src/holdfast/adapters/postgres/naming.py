"""What a batch names and the server has to lock before it begins, in one order for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.adapters.postgres.arranging import Part
from holdfast.ports import commands as c


def named(parts: list[Part]) -> dict[str, list[Any]]:
    """The names by what they are names of, as `0009_apply.sql` lists them; nothing that is empty."""
    found = Named()
    for part in parts:
        collect = COLLECT.get(type(part.commands[0]))
        if collect is not None:
            for command in part.commands:
                collect(found, command)
    return {name: list(names) for name in Named.__slots__ if (names := getattr(found, name))}


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
