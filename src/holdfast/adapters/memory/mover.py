"""Moving what the memory store holds: the readable meaning of the port."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.memory.tables import StoredRun
from holdfast.model.commands import RUN_LETTER, Sweep
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LockFacts, RunFacts
from holdfast.ports.mover import (
    AuditRecord,
    Holder,
    Kind,
    LockEpoch,
    Mark,
    Numbers,
    Page,
    RunRecord,
    Standing,
)
from holdfast.ports.store import Audit, DeadLetter


class MemoryMover:
    """A `Mover` of a store in this process."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._tables = store._tables

    async def exists(self) -> bool:
        return True

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    # --- the mark ---

    async def standing(self) -> Standing:
        tables = self._tables
        rows = self._rows()
        return Standing(
            tables.mark,
            empty=not (tables.runs or tables.letters or tables.audit),
            runs=len(tables.runs),
            numbers=Numbers(tables.last_seq, tables.last_position, tables.confirmed),
            last_run=rows[-1].facts.id if rows else None,
            holders=[*self._leases(), *self._locks()],
        )

    def _rows(self) -> list[StoredRun]:
        """In the order of acceptance."""
        return sorted(self._tables.runs.values(), key=lambda row: row.facts.seq)

    def _leases(self) -> list[Holder]:
        now = self._store._now()
        runs = [row.facts for row in self._tables.runs.values()]
        held = (run for run in runs if run.is_held(run.epoch, now))
        return [Holder(f"run {run.id}", run.worker or "") for run in held]

    def _locks(self) -> list[Holder]:
        now = self._store._now()
        held = (lock for lock in self._tables.locks.values() if lock.is_held(now))
        return [Holder(f"lock {lock.name}", lock.owner) for lock in held]

    async def hold(self, mark: Mark) -> None:
        tables = self._tables
        for row in tables.runs.values():
            row.facts.lease_until = None
        for lock in tables.locks.values():
            lock.token = None
        self._store._apply(Sweep(limit=len(tables.runs)))
        tables.mark = mark

    async def release(self) -> None:
        self._tables.mark = None

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        if kind == "runs":
            last = self._tables.runs[after].facts.seq if after else 0
            rows = [row for row in self._rows() if row.facts.seq > last]
            page = [self._record(row) for row in rows[:limit]]
            return Page(page, page[-1].run.id if len(rows) > limit else None)
        start = int(after or 0)
        records = self._others(kind)
        end = start + limit
        return Page(records[start:end], str(end) if len(records) > end else None)

    def _others(self, kind: Kind) -> list[Any]:
        tables = self._tables
        match kind:
            case "lanes":
                return list(tables.lanes.values())
            case "locks":
                return [LockEpoch(lock.name, lock.epoch) for lock in tables.locks.values()]
            case "letters":
                return [letter for letter in tables.letters.values() if letter.run is None]
            case _:
                return [
                    AuditRecord(
                        number, entry.at, entry.actor, entry.action, entry.target, entry.reason
                    )
                    for number, entry in enumerate(tables.audit, 1)
                ]

    def _record(self, row: StoredRun) -> RunRecord:
        run = row.facts
        letter = self._tables.letters.get(f"{RUN_LETTER}{run.id}")
        return deepcopy(
            RunRecord(
                run.view(),
                run.progress,
                run.unique,
                run.inherits,
                run.holds_lane,
                max(0.0, run.due - self._store._now().mono) if run.due is not None else 0.0,
                sorted(row.checkpoints.values(), key=lambda saved: (saved.step, saved.key)),
                row.quarantine,
                row.history,
                row.logs,
                self._tables.with_body(letter) if letter else None,
            )
        )

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        for record in deepcopy(list(records)):
            match record:
                case RunRecord():
                    self._adopt_run(record)
                case Lane():
                    self._tables.lanes[record.name] = record
                case LockEpoch():
                    lock = self._tables.locks.setdefault(record.name, LockFacts(record.name))
                    lock.epoch = max(lock.epoch, record.epoch)
                case DeadLetter():
                    self._tables.letters.setdefault(record.id, record)
                case AuditRecord() if record.number > len(self._tables.audit):
                    entry = Audit(
                        record.at, record.actor, record.action, record.target, record.reason
                    )
                    self._tables.audit.append(entry)

    def _adopt_run(self, record: RunRecord) -> None:
        if record.run.id in self._tables.runs:
            return
        checkpoints = {(saved.step, saved.key): saved for saved in record.checkpoints}
        facts = self._facts(record)
        row = StoredRun(facts, checkpoints, record.quarantine, record.history, record.logs)
        self._tables.place(row)
        if record.letter is not None:
            self._tables.letters[record.letter.id] = replace(record.letter, body=b"")

    def _facts(self, record: RunRecord) -> RunFacts:
        due = self._store._now().mono + record.delay if record.run.available is not None else None
        return RunFacts.stored(
            record.run,
            progress=record.progress,
            unique=record.unique,
            inherits=record.inherits,
            holds_lane=record.holds_lane,
            due=due,
            delay=record.delay,
            events=len(record.history),
        )

    async def go_on_from(self, numbers: Numbers) -> None:
        tables = self._tables
        # Adopted runs are numbered by positions here.
        tables.last_seq = max(tables.last_seq, numbers.seq, numbers.position)
        tables.last_position = max(tables.last_position, numbers.position)
        tables.confirmed = numbers.confirmed
        events: list[Event] = [event for row in tables.runs.values() for event in row.history]
        unsent = [event for event in events if event.position > numbers.confirmed]
        tables.outbox = {
            event.position: event for event in sorted(unsent, key=lambda event: event.position)
        }
