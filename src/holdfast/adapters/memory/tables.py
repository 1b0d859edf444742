"""What the memory store holds: dictionaries that decisions look at, and what writes changes to
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import EXAMINED, RUN_LETTER, Claim, Prune
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.machine import changes as ch
from holdfast.model.machine.facts import (
    LetterFacts,
    LockFacts,
    Now,
    RecordFacts,
    RunFacts,
    WaitingTenant,
    lasts,
)
from holdfast.model.run import FINISHED, RunState
from holdfast.ports.mover import MoveMark, Quarantined
from holdfast.ports.store import Audit, DeadLetter, RunFilter, StoredLog

ACTIVE = (RunState.QUEUED, RunState.RUNNING)


class StoredRun(Struct):
    """A run with all that belongs to it. Deleting it is forgetting this one object."""

    facts: RunFacts
    checkpoints: dict[tuple[str, str], Checkpoint] = field(default_factory=dict)
    quarantine: list[Quarantined] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    logs: list[StoredLog] = field(default_factory=list)


class Tables:
    """All that a store keeps, as `Facts`."""

    def __init__(self) -> None:
        self.runs: dict[str, StoredRun] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.slots: dict[tuple[str, str], str] = {}
        """The live run of each unique pipeline and tenant."""
        self.lanes: dict[str, Lane] = {}
        self.limits: dict[str, int] = {}
        """How many runs of a tenant may run at once."""
        self.records: dict[str, RecordFacts] = {}
        self.locks: dict[str, LockFacts] = {}
        self.letters: dict[str, DeadLetter] = {}
        self.audit: list[Audit] = []
        self.outbox: dict[int, Event] = {}
        self.last_seq = 0
        self.last_position = 0
        self.mark: MoveMark | None = None
        self._by_lane: defaultdict[tuple[str, RunState], dict[str, RunFacts]] = defaultdict(dict)

    # --- facts ---

    def run(self, id: str) -> RunFacts | None:
        row = self.runs.get(id)
        return row.facts if row else None

    def run_with_key(self, tenant: str, key: str) -> RunFacts | None:
        return self.run(self.keys.get((tenant, key), ""))

    def slot_holder(self, tenant: str, pipeline: str) -> RunFacts | None:
        return self.run(self.slots.get((tenant, pipeline), ""))

    def checkpoint(self, run: str, step: str, key: str) -> Checkpoint | None:
        return self.runs[run].checkpoints.get((step, key))

    def quarantined(self, run: str, step: str) -> int:
        return sum(checkpoint.step == step for checkpoint in self.runs[run].quarantine)

    def log_lines(self, run: str) -> int:
        return len(self.runs[run].logs)

    def lane(self, name: str) -> Lane | None:
        return self.lanes.get(name)

    def lock(self, name: str) -> LockFacts | None:
        return self.locks.get(name)

    def letter(self, id: str) -> LetterFacts | None:
        letter = self.letters.get(id)
        return LetterFacts(id, letter.run, letter.closed) if letter else None

    def record(self, key: str) -> RecordFacts | None:
        return self.records.get(key)

    # --- searches ---

    def waiting(self, claim: Claim, now: Now) -> Sequence[WaitingTenant]:
        queues: defaultdict[str, list[RunFacts]] = defaultdict(list)
        for run in self.in_lane(claim.lane, RunState.QUEUED):
            if run.pipeline in claim.pipelines and run.is_due(now):
                queues[run.tenant].append(run)
        names = sorted(name for name in queues if self.room(name) != 0)
        behind = [name for name in names if name > claim.after]
        turns = behind + [name for name in names if name <= claim.after]
        return [self._waiting(name, queues[name], claim) for name in turns[:EXAMINED]]

    def _waiting(self, tenant: str, runs: list[RunFacts], claim: Claim) -> WaitingTenant:
        running = sum(run.tenant == tenant for run in self.in_lane(claim.lane, RunState.RUNNING))
        first = nsmallest(claim.limit, runs, key=lambda run: (-run.priority, run.seq))
        return WaitingTenant(tenant, running, self.room(tenant), first)

    def room(self, tenant: str) -> int | None:
        limit = self.limits.get(tenant)
        if limit is None:
            return None
        running = sum(
            run.tenant == tenant
            for (_, state), runs in self._by_lane.items()
            if state is RunState.RUNNING
            for run in runs.values()
        )
        return max(0, limit - running)

    def fifo_head(self, lane: str) -> RunFacts | None:
        if any(self.in_lane(lane, RunState.RUNNING)) or self.lane_holder(lane):
            return None
        return min(self.in_lane(lane, RunState.QUEUED), key=_accepted, default=None)

    def lane_holder(self, lane: str) -> RunFacts | None:
        """The failed run that a fifo lane waits for."""
        holding = (run for run in self.in_lane(lane, RunState.FAILED) if run.holds_lane)
        return min(holding, key=_accepted, default=None)

    def ended_leases(self, limit: int, now: Now) -> Sequence[RunFacts]:
        ended = [
            row.facts
            for row in self.runs.values()
            if row.facts.state is RunState.RUNNING
            and not lasts(row.facts.lease_until, row.facts.lease_ttl, now)
        ]
        return sorted(ended, key=lambda run: (run.lease_until or 0.0, run.seq))[:limit]

    def expired(self, prune: Prune, now: Now) -> Sequence[RunFacts]:
        rows = [row for row in self.runs.values() if self._is_expired(row, prune, now)]
        return nsmallest(
            prune.limit,
            [row.facts for row in rows],
            key=lambda run: (run.finished or 0.0, run.seq),
        )

    def _is_expired(self, row: StoredRun, prune: Prune, now: Now) -> bool:
        run = row.facts
        if run.state not in FINISHED or run.holds_lane:
            return False
        is_unsent = prune.sent is not None and prune.sent < row.history[-1].position
        keep = prune.keep_failed if run.state is RunState.FAILED else prune.keep
        return (run.finished or 0.0) + keep <= now.wall and not is_unsent

    def in_lane(self, lane: str, state: RunState) -> Iterable[RunFacts]:
        return self._by_lane[lane, state].values() if (lane, state) in self._by_lane else ()

    def lane_names(self) -> list[str]:
        """The lanes that are defined, and those that have work in them without being defined."""
        busy = (lane for (lane, state), runs in self._by_lane.items() if runs and state in ACTIVE)
        return sorted({*self.lanes, *busy})

    def matching(self, where: RunFilter) -> list[RunFacts]:
        return [row.facts for row in self.runs.values() if where.matches(row.facts)]

    def with_body(self, letter: DeadLetter) -> DeadLetter:
        """The body of a run's letter is the run's input."""
        run = self.run(letter.run) if letter.run else None
        return replace(letter, body=run.input.encode()) if run else letter

    # --- changes ---

    def write(self, change: ch.Change, now: Now) -> None:
        WRITE[type(change)](self, change, now)

    def index(self, row: StoredRun) -> None:
        """Put a run where its state belongs."""
        run = row.facts
        self.runs[run.id] = row
        self._by_lane[run.lane, run.state][run.id] = run
        if run.key is not None:
            self.keys[run.tenant, run.key] = run.id
        if run.unique and run.state.live:
            self.slots[run.tenant, run.pipeline] = run.id

    def _leave(self, run: RunFacts) -> None:
        del self._by_lane[run.lane, run.state][run.id]
        if self.slots.get((run.tenant, run.pipeline)) == run.id:
            del self.slots[run.tenant, run.pipeline]

    def _add_run(self, change: ch.AddRun, now: Now) -> None:
        self.last_seq += 1
        copies = {(c.step, c.key): replace(c, epoch=0) for c in change.checkpoints}
        self.index(StoredRun(replace(change.run, seq=self.last_seq), copies))

    def _change_run(self, change: ch.ChangeRun, now: Now) -> None:
        row = self.runs[change.run]
        self._leave(row.facts)
        row.facts = replace(row.facts, **change.fields)
        self.index(row)

    def _remove_run(self, change: ch.RemoveRun, now: Now) -> None:
        row = self.runs.pop(change.run)
        self._leave(row.facts)
        if row.facts.key is not None:
            del self.keys[row.facts.tenant, row.facts.key]
        for event in row.history:
            self.outbox.pop(event.position, None)
        self.letters.pop(f"{RUN_LETTER}{change.run}", None)

    def _add_event(self, change: ch.AddEvent, now: Now) -> None:
        row = self.runs[change.run]
        run = row.facts
        run.events, self.last_position = run.events + 1, self.last_position + 1
        event = Event(
            run.id,
            run.events,
            change.type,
            now.wall,
            change.data,
            run.tenant,
            run.pipeline,
            self.last_position,
        )
        row.history.append(event)
        self.outbox[event.position] = event

    def _add_letter_event(self, change: ch.AddLetterEvent, now: Now) -> None:
        self.last_position += 1
        tenant = self.letters[change.letter].tenant
        self.outbox[self.last_position] = Event(
            change.letter, 1, change.type, now.wall, change.data, tenant, "", self.last_position
        )

    def _put_checkpoint(self, change: ch.PutCheckpoint, now: Now) -> None:
        saved = change.checkpoint
        self.runs[change.run].checkpoints[saved.step, saved.key] = saved

    def _move_to_quarantine(self, change: ch.MoveToQuarantine, now: Now) -> None:
        row = self.runs[change.run]
        bad = row.checkpoints.pop((change.step, change.key))
        quarantined = Quarantined(change.step, change.key, change.reason, bad.value, now.wall)
        row.quarantine.append(quarantined)

    def _add_log_line(self, change: ch.AddLogLine, now: Now) -> None:
        line = StoredLog(now.wall, change.level, change.step, change.message, change.fields)
        self.runs[change.run].logs.append(line)

    def _open_letter(self, change: ch.OpenLetter, now: Now) -> None:
        before = self.letters.get(change.id)
        self.letters[change.id] = DeadLetter(
            change.id,
            change.source,
            change.reason,
            change.body or b"",
            change.attributes,
            change.tenant,
            before.created if before else now.wall,
            run=change.run,
        )

    def _close_letter(self, change: ch.CloseLetter, now: Now) -> None:
        letter = self.letters[change.id]
        self.letters[change.id] = replace(letter, closed=now.wall, resolution=change.resolution)

    def _add_audit(self, change: ch.AddAudit, now: Now) -> None:
        entry = Audit(now.wall, change.actor, change.action, change.target, change.reason)
        self.audit.append(entry)

    def _put_lock(self, change: ch.PutLock, now: Now) -> None:
        self.locks[change.lock.name] = change.lock

    def _put_lane(self, change: ch.PutLane, now: Now) -> None:
        self.lanes[change.lane.name] = change.lane

    def _put_tenant(self, change: ch.PutTenant, now: Now) -> None:
        if change.running is None:
            self.limits.pop(change.tenant, None)
        else:
            self.limits[change.tenant] = change.running

    def _write_record(self, change: ch.WriteRecord, now: Now) -> None:
        self.records[change.record.key] = change.record

    def _remove_record(self, change: ch.RemoveRecord, now: Now) -> None:
        del self.records[change.key]


WRITE: dict[type, Callable[[Tables, Any, Now], None]] = {
    ch.AddRun: Tables._add_run,
    ch.ChangeRun: Tables._change_run,
    ch.RemoveRun: Tables._remove_run,
    ch.AddEvent: Tables._add_event,
    ch.AddLetterEvent: Tables._add_letter_event,
    ch.PutCheckpoint: Tables._put_checkpoint,
    ch.MoveToQuarantine: Tables._move_to_quarantine,
    ch.AddLogLine: Tables._add_log_line,
    ch.OpenLetter: Tables._open_letter,
    ch.CloseLetter: Tables._close_letter,
    ch.AddAudit: Tables._add_audit,
    ch.PutLock: Tables._put_lock,
    ch.PutLane: Tables._put_lane,
    ch.PutTenant: Tables._put_tenant,
    ch.WriteRecord: Tables._write_record,
    ch.RemoveRecord: Tables._remove_record,
}


def _accepted(run: RunFacts) -> int:
    """The order of acceptance, which is the order of a fifo lane."""
    return run.seq
