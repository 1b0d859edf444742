"""What the memory store holds, and the few acts that every command is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct, field

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock
from holdfast.model.event import STATE_AFTER, Event, EventType
from holdfast.model.lane import Lane
from holdfast.model.run import Progress, Run, RunState
from holdfast.ports.mover import Mark, Quarantined
from holdfast.ports.store import Audit, DeadLetter, RunFilter, StoredLog

ACTIVE = (RunState.QUEUED, RunState.RUNNING)
FINISHED = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


Data = dict[str, Any]
"""What an event says, before it is JSON."""


class StoredRun(Struct):
    """A run with all that belongs to it. Deleting it is forgetting this one object."""

    run: Run
    unique: bool = False
    progress: str = "{}"
    lease_until: float = 0.0
    due: float = 0.0
    """When a delayed run may be claimed, on the monotonic clock; `run.available` says it to
    people."""
    holds_lane: bool = False
    """It failed at the head of a lane with policy `block`, and nobody has resumed or discarded it
    yet."""
    inherits: bool = False
    """It began with checkpoints of another run."""
    checkpoints: dict[tuple[str, str], Checkpoint] = field(default_factory=dict)
    quarantine: list[Quarantined] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    logs: list[StoredLog] = field(default_factory=list)

    def snapshot(self) -> Run:
        """The run for a reader: a copy, because ours changes."""
        return msgspec.structs.replace(
            self.run, progress=msgspec.json.decode(self.progress, type=Progress)
        )


class Lock(Struct):
    """Its epoch outlives every holder."""

    name: str
    epoch: int = 0
    token: str | None = None
    owner: str = ""
    acquired: float = 0.0
    until: float = 0.0


class State:
    """The tables. Times of leases and locks are monotonic, all others are wall time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.runs: dict[str, StoredRun] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.unique_slots: dict[tuple[str, str], str] = {}
        self.lanes: dict[str, Lane] = {}
        self.locks: dict[str, Lock] = {}
        self.dead_letters: dict[str, DeadLetter] = {}
        self.audit: list[Audit] = []
        self.outbox: dict[int, Event] = {}
        self.last_seq = 0
        self.last_position = 0
        self.confirmed = 0
        self.version = 0
        self.mark: Mark | None = None
        self._by_lane: defaultdict[tuple[str, RunState], dict[str, StoredRun]] = defaultdict(dict)

    # --- the fence ---

    def held(self, run: str, epoch: int) -> StoredRun | None:
        """The run, if the holder of this epoch may still write to it."""
        row = self.runs.get(run)
        if (
            row
            and row.run.state is RunState.RUNNING
            and row.run.epoch == epoch
            and not self.lease_ended(row)
        ):
            return row
        return None

    def lease_ended(self, row: StoredRun) -> bool:
        return row.lease_until <= self.clock.monotonic()

    # --- changes ---

    def add(self, row: StoredRun) -> None:
        self.place(row)
        self.record(row, EventType.QUEUED, {})

    def place(self, row: StoredRun) -> None:
        """Put a run where its state belongs, without a word."""
        self.runs[row.run.id] = row
        self._by_lane[row.run.lane, row.run.state][row.run.id] = row

    def forget(self, row: StoredRun) -> None:
        run = row.run
        del self.runs[run.id]
        del self._by_lane[run.lane, run.state][run.id]
        if run.key is not None:
            del self.keys[run.tenant, run.key]
        for event in row.history:
            self.outbox.pop(event.position, None)
        self.dead_letters.pop(dead_letter_id(run.id), None)
        self.touch()

    def change(
        self, row: StoredRun, event: EventType, data: Data, reason: str | None = None
    ) -> None:
        """Give a run the state that the event leads to. Nothing else changes a run's state.

        It ends the lease and any delay. `worker` and `error` stay: who had the run last, what went
        wrong."""
        run = row.run
        del self._by_lane[run.lane, run.state][run.id]
        run.state = RunState(STATE_AFTER[event])
        self._by_lane[run.lane, run.state][run.id] = row
        run.reason, run.available, row.lease_until = reason, None, 0.0
        run.finished = self.clock.now() if run.state in FINISHED else None
        self.record(row, event, data)

    def record(self, row: StoredRun, event: EventType, data: Data | str) -> None:
        """Write an event: the next number of the run, the next position of the outbox."""
        run = row.run
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        seq, self.last_position = len(row.history) + 1, self.last_position + 1
        now = self.clock.now()
        written = Event(run.id, seq, event, now, text, run.tenant, run.pipeline, self.last_position)
        row.history.append(written)
        self.outbox[written.position] = written
        self.touch()

    def note(self, actor: str, action: str, target: str, reason: str) -> None:
        """Write an audit entry."""
        self.audit.append(Audit(self.clock.now(), actor, action, target, reason))
        self.touch()

    def touch(self) -> None:
        """Something was written that somebody may be waiting for."""
        self.version += 1

    # --- looking things up ---

    def lane(self, name: str) -> Lane:
        return self.lanes.get(name) or Lane(name)

    def in_lane(self, lane: str, state: RunState) -> Iterable[StoredRun]:
        return self._by_lane[lane, state].values() if (lane, state) in self._by_lane else ()

    def lane_names(self) -> list[str]:
        """The lanes that are defined, and those that have work in them without being defined."""
        busy = (lane for (lane, state), rows in self._by_lane.items() if rows and state in ACTIVE)
        return sorted({*self.lanes, *busy})

    def lane_holder(self, lane: str) -> StoredRun | None:
        """The failed run that a fifo lane waits for."""
        holding = (row for row in self.in_lane(lane, RunState.FAILED) if row.holds_lane)
        return min(holding, key=accepted, default=None)

    def slot_holder(self, run: Run) -> StoredRun | None:
        """The other live run that takes the unique slot of this run's pipeline and tenant."""
        row = self.runs.get(self.unique_slots.get((run.tenant, run.pipeline), run.id))
        return row if row and row.run.id != run.id and row.run.state.live else None

    def lock_holder(self, name: str) -> Lock | None:
        """The lock, while somebody holds it."""
        lock = self.locks.get(name)
        return (
            lock
            if lock and lock.token is not None and lock.until > self.clock.monotonic()
            else None
        )

    def matching(self, where: RunFilter) -> list[StoredRun]:
        return [row for row in self.runs.values() if _matches(row.run, where)]


def accepted(row: StoredRun) -> int:
    """The order of acceptance, which is the order of a fifo lane."""
    return row.run.seq


def dead_letter_id(run: str) -> str:
    """A run has one dead letter at most, however often it fails."""
    return f"run:{run}"


def _matches(run: Run, where: RunFilter) -> bool:
    return (
        where.tenant in (None, run.tenant)
        and where.pipeline in (None, run.pipeline)
        and where.state in (None, run.state)
        and where.lane in (None, run.lane)
        and where.key in (None, run.key)
        and run.id.startswith(where.id_prefix or "")
    )
