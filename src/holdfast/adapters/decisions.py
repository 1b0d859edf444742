"""Deciding on a server's facts: load without locks, decide here, write if they have not changed.

For the commands that a server has no native form of. Nothing is locked while Python decides: the
facts that were read are sent with the changes, the server compares them with what is there then,
and writes all changes of a decision or none. A decision whose facts have changed is made again on
new facts. Of a run only its state and epoch count as changed, so renewals, progress and checkpoints
of a busy run keep nobody from cancelling it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field

from holdfast.adapters.arranging import Group, arrange
from holdfast.errors import StoreUnavailable
from holdfast.model import commands as c
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import RUN_LETTER, Command, Subject, Wake
from holdfast.model.lane import Lane
from holdfast.model.machine import decide
from holdfast.model.machine.changes import Change, Decision
from holdfast.model.machine.facts import LetterFacts, LockFacts, Now, RecordFacts, RunFacts
from holdfast.model.machine.interventions import PruneRun, SweepRun

TRIES = 30
"""How often facts may have changed before a command is given up."""

Expectation = tuple[Any, ...]
"""A kind of fact, its name, and what was seen: ("run", id, state, epoch), …"""


class Needs(Struct):
    """The names of what commands look at. With a run come the holder of its unique slot and its
    dead letter; lanes are few, and always loaded."""

    runs: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    slots: set[tuple[str, str]] = field(default_factory=set)
    locks: set[str] = field(default_factory=set)
    letters: set[str] = field(default_factory=set)
    checkpoints: set[tuple[str, str, str]] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, commands: Sequence[Command[Any]]) -> Needs:
        needs = cls()
        for command in commands:
            needs.add(command)
        return needs

    def add(self, command: Command[Any]) -> None:
        for kind, name in command.subjects or ():
            match kind:
                case "run":
                    self.runs.add(name)
                    self.letters.add(f"{RUN_LETTER}{name}")
                case "lock":
                    self.locks.add(name)
                case "letter":
                    self.letters.add(name)
                case "record":
                    self.records.add(name)
        match command:
            case c.Submit():
                self.slots.add((command.tenant, command.pipeline))
                if command.key is not None:
                    self.keys.add((command.tenant, command.key))
            case c.SaveCheckpoint() | c.Quarantine():
                self.checkpoints.add((command.run, command.step, command.key))
            case c.Settle(last=c.SaveCheckpoint() as last):
                self.checkpoints.add((last.run, last.step, last.key))


class LoadedFacts(Struct):
    """The facts that were loaded, and the server's time."""

    now: Now
    runs: dict[str, RunFacts] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    slots: dict[tuple[str, str], str] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    locks: dict[str, LockFacts] = field(default_factory=dict)
    letters: dict[str, LetterFacts] = field(default_factory=dict)
    checkpoints: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Their epochs."""
    quarantined: dict[tuple[str, str], int] = field(default_factory=dict)
    records: dict[str, RecordFacts] = field(default_factory=dict)
    raw: Any = None
    """What else the server's adapter wants to know when it commits."""


class Unit(Struct):
    """The changes of a decision, and what must still be so when they are written."""

    expectations: Sequence[Expectation]
    until: float | None
    changes: Sequence[Change]


class Snapshot:
    """`Facts` for one decision, which notes what it looks at. It has no searches: a server makes
    them itself."""

    def __init__(self, loaded: LoadedFacts) -> None:
        self._loaded = loaded
        self._expectations: dict[Expectation, None] = {}

    def _expect(self, *expectation: Any) -> None:
        self._expectations[expectation] = None

    def unit(self, decision: Decision) -> Unit:
        expectations = list(self._expectations)
        if decision.ended is not None:
            [run] = [name for kind, name, *_ in expectations if kind == "run"]
            expectations.append(("lease", run, decision.ended))
        return Unit(expectations, decision.until, decision.changes)

    def run(self, id: str) -> RunFacts | None:
        run = self._loaded.runs.get(id)
        self._expect("run", id, run and run.state, run and run.epoch)
        return run

    def run_with_key(self, tenant: str, key: str) -> RunFacts | None:
        id = self._loaded.keys.get((tenant, key))
        self._expect("key", tenant, key, id)
        return self.run(id) if id is not None else None

    def slot_holder(self, tenant: str, pipeline: str) -> RunFacts | None:
        id = self._loaded.slots.get((tenant, pipeline))
        self._expect("slot", tenant, pipeline, id)
        return self.run(id) if id is not None else None

    def checkpoint(self, run: str, step: str, key: str) -> Checkpoint | None:
        epoch = self._loaded.checkpoints.get((run, step, key))
        self._expect("checkpoint", run, step, key, epoch)
        return None if epoch is None else Checkpoint(step, key, "", "", "", "", epoch=epoch)

    def quarantined(self, run: str, step: str) -> int:
        count = self._loaded.quarantined.get((run, step), 0)
        self._expect("quarantined", run, step, count)
        return count

    def lane(self, name: str) -> Lane | None:
        lane = self._loaded.lanes.get(name)
        self._expect("lane", name, lane and lane.head)
        return lane

    def lock(self, name: str) -> LockFacts | None:
        lock = self._loaded.locks.get(name)
        self._expect("lock", name, lock and lock.epoch, lock and lock.token)
        return lock

    def record(self, key: str) -> RecordFacts | None:
        record = self._loaded.records.get(key)
        self._expect("record", key, record and record.version)
        return record

    def letter(self, id: str) -> LetterFacts | None:
        letter = self._loaded.letters.get(id)
        self._expect("letter", id, letter is not None, letter and letter.closed)
        return letter


class Server(Protocol):
    """What a store's server does natively, and for decisions that are made here."""

    async def apply_native(self, groups: Sequence[Group[str]]) -> list[Any]:
        """Apply the commands of some groups in one call; their replies, one group after another.
        `UNDECIDED` for one that has to be decided here after all."""
        ...

    async def load(self, needs: Needs) -> LoadedFacts: ...

    async def commit(
        self, loaded: LoadedFacts, units: Sequence[Unit], wake: Wake
    ) -> Sequence[bool]:
        """Write each unit if what it expects is so, and wake others. Which were written."""
        ...

    async def ended_leases(self, limit: int) -> Sequence[str]:
        """Runs whose lease has ended, the first that ended first."""
        ...

    async def expired(self, prune: c.Prune) -> Sequence[str]:
        """Finished runs that retention lets go, the oldest first."""
        ...


DECIDED: Final = "decided"
"""The kind of commands that have no native form."""

UNDECIDED: Final = object()


async def apply(
    server: Server, commands: Sequence[Command[Any]], kind_of: Callable[[Command[Any]], str]
) -> list[Any]:
    """Apply a batch. Native commands that follow one another are one call; what is decided here
    comes between them, in its place."""
    replies: list[Any] = [None] * len(commands)
    native: list[Group[str]] = []
    for group in arrange(commands, kind_of):
        if group.kind == DECIDED:
            await _apply_native(server, native, replies)
            native = []
            _fill(replies, group.indexes, await decide_all(server, group.commands))
        else:
            native.append(group)
    await _apply_native(server, native, replies)
    return replies


async def _apply_native(server: Server, groups: Sequence[Group[str]], replies: list[Any]) -> None:
    if not groups:
        return
    indexes = [index for group in groups for index in group.indexes]
    commands = [command for group in groups for command in group.commands]
    answers = await server.apply_native(groups)
    _fill(replies, indexes, answers)
    undecided = [at for at, answer in enumerate(answers) if answer is UNDECIDED]
    if undecided:
        decided = await decide_all(server, [commands[at] for at in undecided])
        _fill(replies, [indexes[at] for at in undecided], decided)


def _fill(replies: list[Any], indexes: Sequence[int], answers: Sequence[Any]) -> None:
    for index, answer in zip(indexes, answers, strict=True):
        replies[index] = answer


async def decide_all(server: Server, commands: Sequence[Command[Any]]) -> list[Any]:
    """Decide commands here. A search is alone: it is a decision for each of the runs it finds."""
    match commands:
        case [c.Sweep(limit=limit)]:
            runs = await server.ended_leases(limit)
            return [await _decide_each(server, [SweepRun(run) for run in runs])]
        case [c.Prune() as prune]:
            runs = await server.expired(prune)
            return [await _decide_each(server, [PruneRun(run) for run in runs])]
    return await _decide(server, commands)


async def _decide_each(server: Server, commands: Sequence[Command[Any]]) -> list[Any]:
    return [reply for reply in await _decide(server, commands) if reply is not None]


async def _decide(server: Server, commands: Sequence[Command[Any]]) -> list[Any]:
    replies: list[Any] = [None] * len(commands)
    waiting = list(range(len(commands)))
    tries = 0
    while waiting:
        now, later = _first_per_subject(commands, waiting)
        loaded = await server.load(Needs.of([commands[index] for index in now]))
        refused = await _decide_on(server, loaded, commands, now, replies)
        waiting = sorted(later + refused)
        if refused:
            tries += 1
            if tries == TRIES:
                raise StoreUnavailable(
                    f"others changed the same records {TRIES} times in a row; nothing was accepted"
                )
            await asyncio.sleep(random.uniform(0, 0.002 * tries))
    return replies


def _first_per_subject(
    commands: Sequence[Command[Any]], waiting: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Of commands with a subject in common the first is decided now, so that the next sees what it
    did."""
    now: list[int] = []
    later: list[int] = []
    locked: set[Subject] = set()
    for index in waiting:
        subjects = set(commands[index].subjects or ())
        (later if locked & subjects else now).append(index)
        locked |= subjects
    return now, later


async def _decide_on(
    server: Server,
    loaded: LoadedFacts,
    commands: Sequence[Command[Any]],
    indexes: Sequence[int],
    replies: list[Any],
) -> list[int]:
    """Decide on these facts and write; what was refused, because the facts have changed."""
    units: list[Unit] = []
    decided: list[int] = []
    wake = Wake.NOBODY
    for index in indexes:
        command, facts = commands[index], Snapshot(loaded)
        decision = decide(command, facts, loaded.now)
        replies[index] = decision.reply
        if decision.changes:
            decided.append(index)
            units.append(facts.unit(decision))
            wake = max(wake, command.wakes(decision.reply))
    written = await server.commit(loaded, units, wake) if units else ()
    return [index for index, is_written in zip(decided, written, strict=True) if not is_written]
