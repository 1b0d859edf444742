"""Moving what the memory store holds: the readable meaning of the port."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import astuple, replace

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.memory.tables import StoredRun
from holdfast.model.commands import RUN_LETTER, Sweep
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LockFacts, RecordFacts
from holdfast.ports.mover import (
    AuditRecord,
    ExpiringRecord,
    Holder,
    Kind,
    LetterRecord,
    LockEpoch,
    MoveMark,
    MoveState,
    Numbers,
    Page,
    RunRecord,
    TenantLimit,
)
from holdfast.ports.records import Record
from holdfast.ports.store import Audit


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

    async def move_state(self) -> MoveState:
        tables = self._tables
        rows = self._rows()
        return MoveState(
            tables.mark,
            empty=not (tables.runs or tables.letters or tables.audit),
            runs=len(tables.runs),
            numbers=Numbers(tables.last_seq, tables.last_position),
            last_run=rows[-1].facts.id if rows else None,
            holders=[*self._leases(), *self._locks()],
        )

    def _rows(self) -> list[StoredRun]:
        """In the order of acceptance."""
        return sorted(self._tables.runs.values(), key=lambda row: row.facts.seq)

    def _leases(self) -> list[Holder]:
        now = self._store._now()
        runs = [row.facts for row in self._tables.runs.values()]
        leased = (run for run in runs if run.is_held(run.epoch, now))
        return [Holder(f"run {run.id}", run.worker or "") for run in leased]

    def _locks(self) -> list[Holder]:
        now = self._store._now()
        leases = (lock for lock in self._tables.locks.values() if lock.is_held(now))
        return [Holder(f"lock {lock.name}", lock.owner) for lock in leases]

    async def hold(self, mark: MoveMark) -> None:
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
        tables, now = self._tables, self._store._now()
        match kind:
            case "lanes":
                return list(tables.lanes.values())
            case "tenants":
                return [TenantLimit(*limit) for limit in tables.limits.items()]
            case "locks":
                return [LockEpoch(lock.name, lock.epoch) for lock in tables.locks.values()]
            case "records":
                return [
                    ExpiringRecord(
                        Record(r.key, r.value, r.version, r.updated),
                        None if r.lease_until is None else r.lease_until - now.mono,
                    )
                    for r in tables.records.values()
                    if r.is_live(now)
                ]
            case "letters":
                letters = [letter for letter in tables.letters.values() if letter.run is None]
                events = {event.run: event for event in tables.outbox.values()}
                return [LetterRecord(letter, events[letter.id]) for letter in letters]
            case _:
                return [
                    AuditRecord(number, e.at, e.actor, e.action, e.target, e.reason)
                    for number, e in enumerate(tables.audit, 1)
                ]

    def _record(self, row: StoredRun) -> RunRecord:
        run = row.facts
        letter = self._tables.letters.get(f"{RUN_LETTER}{run.id}")
        wait = 0.0 if run.due is None else max(0.0, run.due - self._store._now().mono)
        return deepcopy(
            RunRecord(
                replace(run, due=None, delay=0.0, lease_until=None, lease_ttl=0.0),
                wait,
                sorted(row.checkpoints.values(), key=lambda saved: (saved.step, saved.key)),
                row.quarantine,
                row.history,
                row.logs,
                self._tables.with_body(letter) if letter else None,
            )
        )

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        tables = self._tables
        for record in deepcopy(list(records)):
            match record:
                case RunRecord():
                    self._adopt_run(record)
                case Lane():
                    tables.lanes[record.name] = record
                case TenantLimit():
                    tables.limits[record.tenant] = record.running
                case LockEpoch():
                    lock = tables.locks.setdefault(record.name, LockFacts(record.name))
                    lock.epoch = max(lock.epoch, record.epoch)
                case ExpiringRecord():
                    tables.records.setdefault(record.record.key, self._record_facts(record))
                case LetterRecord():
                    tables.letters.setdefault(record.letter.id, record.letter)
                    tables.outbox[record.event.position] = record.event
                case AuditRecord() if record.number > len(tables.audit):
                    entry = Audit(
                        record.at, record.actor, record.action, record.target, record.reason
                    )
                    tables.audit.append(entry)

    def _record_facts(self, moved: ExpiringRecord) -> RecordFacts:
        facts = RecordFacts(*astuple(moved.record))
        if moved.remaining is not None:
            facts.lease_until = self._store._now().mono + moved.remaining
            facts.lease_ttl = moved.remaining
        return facts

    def _adopt_run(self, record: RunRecord) -> None:
        if record.run.id in self._tables.runs:
            return
        checkpoints = {(saved.step, saved.key): saved for saved in record.checkpoints}
        is_delayed = record.run.available is not None
        due = self._store._now().mono + record.wait if is_delayed else None
        facts = replace(record.run, due=due, delay=record.wait)
        row = StoredRun(facts, checkpoints, record.quarantine, record.history, record.logs)
        self._tables.index(row)
        for event in record.history:
            self._tables.outbox[event.position] = event
        if record.letter is not None:
            self._tables.letters[record.letter.id] = replace(record.letter, body=b"")

    async def continue_from(self, numbers: Numbers) -> None:
        tables = self._tables
        # Adopted runs are numbered by positions here.
        tables.last_seq = max(tables.last_seq, numbers.seq, numbers.position)
        tables.last_position = max(tables.last_position, numbers.position)
        tables.outbox = dict(sorted(tables.outbox.items()))
