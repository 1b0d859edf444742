"""An attempt at a run: claimed under a lease, written under its fence, settled once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import (
    EXAMINED,
    Claim,
    FencedCommand,
    LogLine,
    Quarantine,
    Renew,
    SaveCheckpoint,
    SaveProgress,
    Settle,
)
from holdfast.model.event import EventType
from holdfast.model.lane import Lane
from holdfast.model.machine.changes import (
    AddEvent,
    AddLogLine,
    Change,
    ChangeRun,
    Decision,
    MoveToQuarantine,
    PutCheckpoint,
    encode,
    move,
)
from holdfast.model.machine.facts import Facts, LocalFacts, Now, RunFacts
from holdfast.model.machine.failing import fail
from holdfast.model.machine.fairness import take_turns
from holdfast.model.replies import STALE, Claimed

LOG_LIMIT = 10_000
"""Lines kept of one run's log; what comes later is dropped."""


# --- claiming ---


def claim(command: Claim, facts: LocalFacts, now: Now) -> Decision:
    lane = facts.lane(command.lane) or Lane(command.lane)
    limit = min(command.limit, EXAMINED)
    if lane.order == "fifo":
        runs = _head(command, lane, facts, now)[: max(0, limit)]
    else:
        runs = take_turns(facts.waiting(command, now), limit)
    chosen = list(_within(runs, command.max_bytes))
    changes = [change for run in chosen for change in _start(run, command, now)]
    return Decision([_claimed(run) for run in chosen], changes)


def _head(command: Claim, lane: Lane, facts: LocalFacts, now: Now) -> list[RunFacts]:
    """From a fifo lane: its first queued run, for its leader, when nothing is under way or in the
    way."""
    lock = facts.lock(lane.leader_lock)
    if lock is None or not lock.is_held(now):
        return []
    if (lock.token, lock.epoch) != (command.token, command.term):
        return []
    head = facts.fifo_head(lane.name)
    if head is None or head.pipeline not in command.pipelines or not head.is_due(now):
        return []
    return [] if facts.room(head.tenant) == 0 else [head]


def _within(runs: Iterable[RunFacts], max_bytes: int) -> Iterable[RunFacts]:
    """As many as fit; one is always allowed, or a large input would wait for ever."""
    size = 0
    for index, run in enumerate(runs):
        size += len(run.input.encode())
        if index and size > max_bytes:
            return
        yield run


def _start(run: RunFacts, command: Claim, now: Now) -> list[Change]:
    epoch, attempts = run.epoch + 1, run.attempts + 1
    return move(
        run,
        EventType.STARTED,
        {"attempt": attempts, "worker": command.worker, "epoch": epoch},
        now,
        epoch=epoch,
        attempts=attempts,
        worker=command.worker,
        lease_until=now.mono + command.ttl,
        lease_ttl=command.ttl,
        **({} if run.started else {"started": now.wall}),
    )


def _claimed(run: RunFacts) -> Claimed:
    return Claimed(
        run.id,
        run.tenant,
        run.pipeline,
        run.lane,
        run.epoch + 1,
        run.attempts + 1,
        run.attempt_limit,
        run.input,
        run.progress,
        resumed=run.epoch > 0 or run.inherits,
        fingerprint=run.fingerprint,
    )


def renew(command: Renew, facts: Facts, now: Now) -> Decision:
    lost: list[tuple[str, int]] = []
    changes: list[Change] = []
    for id, epoch in command.held:
        run = facts.run(id)
        if run is None or not run.is_held(epoch, now):
            lost.append((id, epoch))
            continue
        until = max(run.lease_until or 0.0, now.mono + command.ttl)
        ttl = max(run.lease_ttl, command.ttl)
        changes.append(ChangeRun(id, {"lease_until": until, "lease_ttl": ttl}))
    return Decision(lost, changes)


# --- writing under the fence ---


def _held(command: FencedCommand[Any], facts: Facts, now: Now) -> RunFacts | None:
    """The run, if the holder of the command's epoch may still write to it."""
    run = facts.run(command.run)
    return run if run is not None and run.is_held(command.epoch, now) else None


def save_checkpoint(command: SaveCheckpoint, facts: Facts, now: Now) -> Decision:
    run = _held(command, facts, now)
    if run is None:
        return Decision(STALE)
    return Decision(None, _saved(command, facts), run.lease_until)


def _saved(command: SaveCheckpoint, facts: Facts) -> list[Change]:
    """One event per step and attempt: a repeated command writes none."""
    changes: list[Change] = [PutCheckpoint(command.run, _checkpoint(command))]
    if command.key == "":
        before = facts.checkpoint(command.run, command.step, "")
        if before is None or before.epoch != command.epoch:
            event = STEP_SKIPPED if command.skipped else STEP_COMPLETED
            changes.append(AddEvent(command.run, event, command.record))
    return changes


STEP_COMPLETED, STEP_SKIPPED = str(EventType.STEP_COMPLETED), str(EventType.STEP_SKIPPED)


def _checkpoint(command: SaveCheckpoint) -> Checkpoint:
    return Checkpoint(
        command.step,
        command.key,
        command.value,
        command.checksum,
        command.schema,
        command.fingerprint,
        command.record,
        command.epoch,
    )


def quarantine(command: Quarantine, facts: Facts, now: Now) -> Decision:
    run = _held(command, facts, now)
    if run is None:
        return Decision(STALE)
    count = facts.quarantined(command.run, command.step)
    if facts.checkpoint(command.run, command.step, command.key) is None:
        return Decision(count)  # a repeated command only learns the number again
    data = {"step": command.step, "key": command.key, "reason": command.reason}
    moved = MoveToQuarantine(command.run, command.step, command.key, command.reason)
    event = AddEvent(command.run, EventType.CHECKPOINT_QUARANTINED, encode(data).decode())
    return Decision(count + 1, [moved, event], run.lease_until)


def save_progress(command: SaveProgress, facts: Facts, now: Now) -> Decision:
    run = _held(command, facts, now)
    if run is None:
        return Decision(STALE)
    return Decision(None, [ChangeRun(run.id, {"progress": command.progress})], run.lease_until)


def log_line(command: LogLine, facts: LocalFacts, now: Now) -> Decision:
    run = _held(command, facts, now)
    if run is None:
        return Decision(STALE)
    if facts.log_lines(run.id) >= LOG_LIMIT:
        return Decision(None)
    line = AddLogLine(run.id, command.level, command.step, command.message, command.fields)
    return Decision(None, [line], run.lease_until)


# --- settling ---


def settle(command: Settle, facts: Facts, now: Now) -> Decision:
    run = _held(command, facts, now)
    if run is None:
        return Decision(STALE)
    changes = _saved(command.last, facts) if command.last else []
    changes += _end_attempt(run, command, facts, now)
    return Decision(None, changes, run.lease_until)


def _end_attempt(run: RunFacts, command: Settle, facts: Facts, now: Now) -> list[Change]:
    """After a hand-over, a pause or a deferred retry the attempt does not count."""
    uncounted = {"attempts": run.attempts - 1}
    left: dict[str, Any] = {"progress": command.progress, "error": command.error}
    match command.outcome:
        case "succeeded":
            result = {"result": command.result, "result_checksum": command.checksum}
            left |= {**result, "error": None}
            return move(run, EventType.COMPLETED, _execution(run, command), now, **left)
        case "paused":
            left |= {"reason": command.reason, **uncounted}
            return move(run, EventType.PAUSED, {"reason": command.reason}, now, **left)
        case "handover":
            return move(run, EventType.HANDED_OVER, {}, now, **left, **uncounted)
        case "retry" if command.deferred:
            return _retry(run, command, now, **left, **uncounted)
        case "retry" if run.attempts < run.attempt_limit:
            return _retry(run, command, now, **left)
        case _:
            data = _execution(run, command)
            return fail(run, command.error, data, facts, now, progress=command.progress)


def _execution(run: RunFacts, command: Settle) -> dict[str, Any]:
    return {"attempt": run.attempts, "execution_time_ms": command.execution_ms}


def _retry(run: RunFacts, command: Settle, now: Now, **fields: Any) -> list[Change]:
    error = msgspec.Raw(command.error.encode()) if command.error else None
    if command.delay > 0:
        fields["available"] = now.wall + command.delay
        fields["due"] = now.mono + command.delay
    data = {"attempt": run.attempts, "delay": command.delay, "error": error}
    return move(run, EventType.RETRYING, data, now, delay=command.delay, **fields)
