"""Moving what the memory store holds: the readable meaning of the port."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from holdfast.adapters.memory import operations
from holdfast.adapters.memory.state import Lock, State, StoredRun, accepted, dead_letter_id
from holdfast.adapters.memory.store import MemoryStore
from holdfast.model.commands import Sweep
from holdfast.model.event import Event
from holdfast.model.lane import Lane
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
        self._state: State = store._state

    async def exists(self) -> bool:
        return True

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    # --- the mark ---

    async def standing(self) -> Standing:
        state = self._state
        return Standing(
            state.mark,
            empty=not (state.runs or state.dead_letters or state.audit),
            runs=len(state.runs),
            numbers=Numbers(state.last_seq, state.last_position, state.confirmed),
            last_run=next(
                (row.run.id for row in sorted(state.runs.values(), key=accepted, reverse=True)),
                None,
            ),
            holders=[*self._leases(), *self._locks()],
        )

    def _leases(self) -> list[Holder]:
        rows = self._state.runs.values()
        held = (row.run for row in rows if self._state.held(row.run.id, row.run.epoch))
        return [Holder(f"run {run.id}", run.worker or "") for run in held]

    def _locks(self) -> list[Holder]:
        held = (lock for name in self._state.locks if (lock := self._state.lock_holder(name)))
        return [Holder(f"lock {lock.name}", lock.owner) for lock in held]

    async def hold(self, mark: Mark) -> None:
        state = self._state
        for row in state.runs.values():
            row.lease_until = 0.0
        for lock in state.locks.values():
            lock.token = None
        operations.sweep(state, Sweep(limit=len(state.runs)))
        state.mark = mark

    async def release(self) -> None:
        self._state.mark = None

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        if kind == "runs":
            last = accepted(self._state.runs[after]) if after else 0
            rows = sorted(
                (row for row in self._state.runs.values() if accepted(row) > last), key=accepted
            )
            page = [self._record(row) for row in rows[:limit]]
            return Page(page, page[-1].run.id if len(rows) > limit else None)
        start = int(after or 0)
        found = self._others(kind)
        return Page(
            found[start : start + limit], str(start + limit) if len(found) > start + limit else None
        )

    def _others(self, kind: Kind) -> list[Any]:
        state = self._state
        match kind:
            case "lanes":
                return list(state.lanes.values())
            case "locks":
                return [LockEpoch(lock.name, lock.epoch) for lock in state.locks.values()]
            case "letters":
                return [letter for letter in state.dead_letters.values() if letter.run is None]
            case _:
                return [
                    AuditRecord(
                        number, entry.at, entry.actor, entry.action, entry.target, entry.reason
                    )
                    for number, entry in enumerate(state.audit, 1)
                ]

    def _record(self, row: StoredRun) -> RunRecord:
        return deepcopy(
            RunRecord(
                row.snapshot(),
                row.progress,
                row.unique,
                row.inherits,
                row.holds_lane,
                max(0.0, row.due - self._state.clock.monotonic())
                if row.run.available is not None
                else 0.0,
                sorted(row.checkpoints.values(), key=lambda found: (found.step, found.key)),
                row.quarantine,
                row.history,
                row.logs,
                self._state.dead_letters.get(dead_letter_id(row.run.id)),
            )
        )

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        for record in deepcopy(list(records)):
            match record:
                case RunRecord():
                    self._adopt_run(record)
                case Lane():
                    self._state.lanes[record.name] = record
                case LockEpoch():
                    lock = self._state.locks.setdefault(record.name, Lock(record.name))
                    lock.epoch = max(lock.epoch, record.epoch)
                case DeadLetter():
                    self._state.dead_letters.setdefault(record.id, record)
                case AuditRecord() if record.number > len(self._state.audit):
                    entry = Audit(
                        record.at, record.actor, record.action, record.target, record.reason
                    )
                    self._state.audit.append(entry)

    def _adopt_run(self, record: RunRecord) -> None:
        state, run = self._state, record.run
        if run.id in state.runs:
            return
        row = StoredRun(
            run,
            record.unique,
            record.progress,
            due=state.clock.monotonic() + record.delay,
            holds_lane=record.holds_lane,
            inherits=record.inherits,
            checkpoints={(found.step, found.key): found for found in record.checkpoints},
            quarantine=record.quarantine,
            history=record.history,
            logs=record.logs,
        )
        state.place(row)
        if run.key is not None:
            state.keys[run.tenant, run.key] = run.id
        if record.unique and run.state.live:
            state.unique_slots[run.tenant, run.pipeline] = run.id
        if record.letter is not None:
            state.dead_letters[record.letter.id] = record.letter

    async def go_on_from(self, numbers: Numbers) -> None:
        state = self._state
        state.last_seq = max(
            state.last_seq, numbers.seq, numbers.position
        )  # runs are numbered by positions here
        state.last_position = max(state.last_position, numbers.position)
        state.confirmed = numbers.confirmed
        events: list[Event] = [event for row in state.runs.values() for event in row.history]
        unsent = [event for event in events if event.position > numbers.confirmed]
        state.outbox = {
            event.position: event for event in sorted(unsent, key=lambda event: event.position)
        }
