"""An attempt at a run: claimed under a lease, written under its fence, settled once."""

from __future__ import annotations

from heapq import nsmallest

import msgspec

from holdfast.adapters.memory.failing import fail
from holdfast.adapters.memory.state import State, StoredRun, accepted
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import (
    STALE,
    Claim,
    Claimed,
    LogLine,
    Quarantine,
    Renew,
    SaveCheckpoint,
    SaveProgress,
    Settle,
    Stale,
)
from holdfast.model.event import EventType
from holdfast.model.lane import Lane
from holdfast.model.run import ErrorInfo, RunState
from holdfast.ports.mover import Quarantined
from holdfast.ports.store import StoredLog

LOG_LIMIT = 10_000
"""Lines kept of one run's log; what comes later is dropped."""


# --- claiming ---


def claim(state: State, command: Claim) -> list[Claimed]:
    _end_delays(state)
    lane = state.lane(command.lane)
    rows = _head(state, command, lane) if lane.order == "fifo" else _next(state, command)
    return [_start(state, row, command) for row in rows[: max(0, command.limit)]]


def _end_delays(state: State) -> None:
    for row in state.runs.values():
        if (
            row.run.state is RunState.QUEUED
            and row.run.available is not None
            and row.due <= state.clock.monotonic()
        ):
            row.run.available = None


def _next(state: State, command: Claim) -> list[StoredRun]:
    """From a parallel lane: by priority, then in order of acceptance, as many as fit into
    `max_bytes`."""
    queued = (
        row
        for row in state.in_lane(command.lane, RunState.QUEUED)
        if _claimable(state, row, command)
    )
    ordered = nsmallest(command.limit, queued, key=lambda row: (-row.run.priority, row.run.seq))
    size, rows = 0, []
    for row in ordered:
        size += len(row.run.input.encode())
        if rows and size > command.max_bytes:
            break
        rows.append(row)
    return rows


def _head(state: State, command: Claim, lane: Lane) -> list[StoredRun]:
    """From a fifo lane: its first queued run, for its leader, when nothing is under way or in the
    way."""
    if not _leads(state, command, lane) or any(state.in_lane(lane.name, RunState.RUNNING)):
        return []
    if state.lane_holder(lane.name):
        return []
    head = min(state.in_lane(lane.name, RunState.QUEUED), key=accepted, default=None)
    return [head] if head and _claimable(state, head, command) else []


def _leads(state: State, command: Claim, lane: Lane) -> bool:
    lock = state.lock_holder(lane.leader_lock)
    return lock is not None and (lock.token, lock.epoch) == (command.token, command.term)


def _claimable(state: State, row: StoredRun, command: Claim) -> bool:
    return row.run.available is None and row.run.pipeline in command.pipelines


def _start(state: State, row: StoredRun, command: Claim) -> Claimed:
    run = row.run
    resumed = run.epoch > 0 or row.inherits
    run.epoch += 1
    run.attempts += 1
    data = {"attempt": run.attempts, "worker": command.worker, "epoch": run.epoch}
    state.change(row, EventType.STARTED, data)
    run.worker = command.worker
    run.started = run.started or state.clock.now()
    row.lease_until = state.clock.monotonic() + command.ttl
    return Claimed(
        run.id,
        run.tenant,
        run.pipeline,
        run.lane,
        run.epoch,
        run.attempts,
        run.attempt_limit,
        run.input,
        row.progress,
        resumed,
    )


def renew(state: State, command: Renew) -> list[tuple[str, int]]:
    until = state.clock.monotonic() + command.ttl
    lost: list[tuple[str, int]] = []
    for run, epoch in command.held:
        if row := state.held(run, epoch):
            row.lease_until = max(row.lease_until, until)
        else:
            lost.append((run, epoch))
    return lost


# --- writing under the fence ---


def save_checkpoint(state: State, command: SaveCheckpoint) -> Stale | None:
    row = state.held(command.run, command.epoch)
    if row is None:
        return STALE
    _store_checkpoint(state, row, command)
    return None


def _store_checkpoint(state: State, row: StoredRun, command: SaveCheckpoint) -> None:
    before = row.checkpoints.get((command.step, command.key))
    repeated = before is not None and before.epoch == command.epoch
    row.checkpoints[command.step, command.key] = Checkpoint(
        command.step,
        command.key,
        command.value,
        command.checksum,
        command.schema,
        command.fingerprint,
        command.record,
        command.epoch,
    )
    state.touch()
    if command.key == "" and not repeated:
        event = EventType.STEP_SKIPPED if command.skipped else EventType.STEP_COMPLETED
        state.record(row, event, command.record)


def quarantine(state: State, command: Quarantine) -> int | Stale:
    row = state.held(command.run, command.epoch)
    if row is None:
        return STALE
    # A repeated command finds nothing left to take out, and only learns the number again.
    if bad := row.checkpoints.pop((command.step, command.key), None):
        aside = Quarantined(command.step, command.key, command.reason, bad.value, state.clock.now())
        row.quarantine.append(aside)
        data = {"step": command.step, "key": command.key, "reason": command.reason}
        state.record(row, EventType.CHECKPOINT_QUARANTINED, data)
    return sum(bad.step == command.step for bad in row.quarantine)


def save_progress(state: State, command: SaveProgress) -> Stale | None:
    row = state.held(command.run, command.epoch)
    if row is None:
        return STALE
    row.progress = command.progress
    state.touch()
    return None


def log_line(state: State, command: LogLine) -> Stale | None:
    row = state.held(command.run, command.epoch)
    if row is None:
        return STALE
    if len(row.logs) < LOG_LIMIT:
        line = StoredLog(
            state.clock.now(), command.level, command.step, command.message, command.fields
        )
        row.logs.append(line)
        state.touch()
    return None


# --- settling ---


def settle(state: State, command: Settle) -> Stale | None:
    row = state.held(command.run, command.epoch)
    if row is None:
        return STALE
    if command.last:
        _store_checkpoint(state, row, command.last)
    row.progress = command.progress
    row.run.error = msgspec.json.decode(command.error, type=ErrorInfo) if command.error else None
    _end_attempt(state, row, command)
    return None


def _end_attempt(state: State, row: StoredRun, command: Settle) -> None:
    match command.outcome:
        case "succeeded":
            row.run.result, row.run.error = command.result, None
            state.change(row, EventType.COMPLETED, {})
        case "failed":
            fail(state, row, row.run.error)
        case "paused":
            row.run.attempts -= 1
            state.change(row, EventType.PAUSED, {"reason": command.reason}, command.reason)
        case "retry":
            _retry(state, row, command)
        case "handover":
            row.run.attempts -= 1
            state.change(row, EventType.HANDED_OVER, {})


def _retry(state: State, row: StoredRun, command: Settle) -> None:
    delay = command.delay
    if command.deferred:
        row.run.attempts -= 1
    elif row.run.attempts >= row.run.attempt_limit:
        fail(state, row, row.run.error)
        return
    state.change(row, EventType.RETRYING, {"delay": delay, "error": row.run.error})
    row.run.available = state.clock.now() + delay if delay > 0 else None
    row.due = state.clock.monotonic() + delay
