"""What a worker does with a run: claim, renew, checkpoint, settle. All of it fenced."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.adapters.sqlite.deadletters import bury_run
from holdfast.adapters.sqlite.transaction import (
    HELD,
    Transaction,
    append_event,
    append_events,
    decode,
    encode,
    holds,
    pack,
    stale,
)
from holdfast.model.event import EventType
from holdfast.ports.commands import (
    STALE,
    Claim,
    Claimed,
    LogLine,
    Quarantine,
    Renew,
    SaveCheckpoint,
    SaveProgress,
    Settle,
)

MAX_LOG_LINES = 10_000

_claimed = msgspec.json.Decoder(list[Claimed], strict=False)

_COLUMNS = (
    "json_array(id, tenant, pipeline, lane, epoch + 1, attempts + 1, attempt_limit, input, progress, "
    "epoch > 0 OR inherited)"
)

_READY = f"""
SELECT json_group_array({_COLUMNS}) FROM (
    SELECT * FROM runs WHERE lane = ?1 AND state = 'queued' AND available IS NULL
    AND pipeline IN (SELECT value FROM json_each(?2)) ORDER BY priority DESC, seq LIMIT ?3)
"""  # noqa: S608

_HEAD = f"""
SELECT json_group_array({_COLUMNS}) FROM (
    SELECT * FROM (SELECT * FROM runs WHERE lane = ?1 AND state = 'queued' ORDER BY seq LIMIT 1)
    WHERE available IS NULL AND pipeline IN (SELECT value FROM json_each(?2)))
"""  # noqa: S608

_PROMOTE = "UPDATE runs SET available = NULL WHERE state = 'queued' AND available IS NOT NULL AND available <= ?"

_LEASE = """
UPDATE runs SET state = 'running', epoch = epoch + 1, attempts = attempts + 1, worker = ?2, lease_until = ?3,
                lease_ttl = ?4, started = coalesce(started, ?5), reason = NULL
WHERE id IN (SELECT value->>0 FROM json_each(?1))
"""

_STARTED = f"""
INSERT INTO events (run, seq, type, at, data)
SELECT r.id, coalesce((SELECT max(e.seq) FROM events e WHERE e.run = r.id), 0) + 1, '{EventType.STARTED}', ?2,
       json_object('attempt', r.attempts, 'worker', r.worker, 'epoch', r.epoch)
FROM json_each(?1) j JOIN runs r ON r.id = j.value->>0 ORDER BY j.key
"""  # noqa: S608


def claim(tx: Transaction, command: Claim) -> list[Claimed]:
    tx.execute(_PROMOTE, (tx.now,))
    found = _claimed.decode(_candidates(tx, command))
    chosen = _within(found, command.max_bytes)
    if chosen:
        batch = pack(chosen)
        tx.execute(_LEASE, (batch, command.worker, tx.mono + command.ttl, command.ttl, tx.now))
        tx.execute(_STARTED, (batch, tx.now))
    return chosen


def _candidates(tx: Transaction, command: Claim) -> str:
    names = encode(command.pipelines).decode()
    order = tx.value("SELECT sort FROM lanes WHERE name = ?", command.lane)
    if order != "fifo":
        return tx.value(_READY, command.lane, names, command.limit)
    if command.limit < 1 or not _leads(tx, command) or _lane_is_busy(tx, command.lane):
        return "[]"
    return tx.value(_HEAD, command.lane, names)


def _leads(tx: Transaction, command: Claim) -> bool:
    return tx.value(
        "SELECT 1 FROM locks WHERE name = ? AND token = ? AND epoch = ? AND lease_until > ?",
        f"lane:{command.lane}",
        command.token,
        command.term,
        tx.mono,
    )


def _lane_is_busy(tx: Transaction, lane: str) -> bool:
    return tx.value("SELECT 1 FROM runs WHERE lane = ? AND (state = 'running' OR holds_lane)", lane)


def _within(found: list[Claimed], max_bytes: int) -> list[Claimed]:
    """The longest start of the list that fits; one is always allowed, or a large input would wait for ever."""
    total = 0
    for index, run in enumerate(found):
        total += len(run.input)
        if index and total > max_bytes:
            return found[:index]
    return found


_RENEW = f"""
UPDATE runs AS r SET lease_until = max(r.lease_until, :until), lease_ttl = max(r.lease_ttl, :ttl)
FROM json_each(:batch) j WHERE r.id = j.value->>0 AND r.epoch = j.value->>1 AND {HELD}
"""  # noqa: S608


def renew(tx: Transaction, command: Renew) -> list[str]:
    batch = pack(command.held)
    lost = stale(tx, batch)
    tx.execute(
        _RENEW, {"batch": batch, "until": tx.mono + command.ttl, "ttl": command.ttl, "mono": tx.mono}
    )
    return [command.held[index][0] for index in sorted(lost)]


_STEP_EVENTS = f"""
INSERT INTO events (run, seq, type, at, data)
SELECT j.value->>0,
       coalesce((SELECT max(e.seq) FROM events e WHERE e.run = j.value->>0), 0)
           + row_number() OVER (PARTITION BY j.value->>0 ORDER BY j.key),
       iif(j.value->>9, '{EventType.STEP_SKIPPED}', '{EventType.STEP_COMPLETED}'), ?2, j.value->>8
FROM json_each(?1) j WHERE j.value->>3 = '' AND NOT EXISTS (
    SELECT 1 FROM checkpoints c
    WHERE c.run = j.value->>0 AND c.step = j.value->>2 AND c.key = '' AND c.epoch = j.value->>1)
ORDER BY j.key
"""  # noqa: S608

_CHECKPOINTS = """
INSERT OR REPLACE INTO checkpoints (run, epoch, step, key, value, checksum, schema, fingerprint, record)
SELECT j.value->>0, j.value->>1, j.value->>2, j.value->>3, j.value->>4, j.value->>5, j.value->>6, j.value->>7,
       j.value->>8
FROM json_each(?1) j WHERE true ORDER BY j.key
"""


def save_checkpoints(tx: Transaction, commands: list[SaveCheckpoint]) -> list[Any]:
    return _fenced(tx, commands, _write_checkpoints)


def _write_checkpoints(tx: Transaction, commands: list[SaveCheckpoint], batch: str) -> None:
    if any(not c.key for c in commands):
        tx.execute(_STEP_EVENTS, (batch, tx.now))
    tx.execute(_CHECKPOINTS, (batch,))


def _fenced(tx: Transaction, commands: list[Any], write: Any) -> list[Any]:
    """Write the commands whose lease holds; answer STALE to the others."""
    batch = pack(commands)
    refused = stale(tx, batch)
    if refused:
        accepted = [c for index, c in enumerate(commands) if index not in refused]
        if accepted:
            write(tx, accepted, pack(accepted))
        return [STALE if index in refused else None for index in range(len(commands))]
    write(tx, commands, batch)
    return [None] * len(commands)


def save_progress(tx: Transaction, commands: list[SaveProgress]) -> list[Any]:
    return _fenced(tx, commands, _write_progress)


def _write_progress(tx: Transaction, commands: list[SaveProgress], batch: str) -> None:
    tx.execute("UPDATE runs SET progress = j.value->>2 FROM json_each(?) j WHERE runs.id = j.value->>0", (batch,))


_LOGS = f"""
INSERT INTO logs (run, at, level, step, message, fields)
SELECT j.value->>0, ?2, j.value->>2, j.value->>3, j.value->>4, j.value->>5 FROM json_each(?1) j
WHERE (SELECT count(*) FROM logs l WHERE l.run = j.value->>0) < {MAX_LOG_LINES} ORDER BY j.key
"""  # noqa: S608


def log_lines(tx: Transaction, commands: list[LogLine]) -> list[Any]:
    return _fenced(tx, commands, lambda tx, _, batch: tx.execute(_LOGS, (batch, tx.now)))


def quarantine(tx: Transaction, command: Quarantine) -> Any:
    if not holds(tx, command.run, command.epoch):
        return STALE
    place = (command.run, command.step, command.key)
    removed = tx.one("DELETE FROM checkpoints WHERE run = ? AND step = ? AND key = ? RETURNING value", *place)
    if removed:
        tx.execute(
            "INSERT INTO quarantine (run, step, key, reason, value, at) VALUES (?, ?, ?, ?, ?, ?)",
            (*place, command.reason, removed[0], tx.now),
        )
        data = {"step": command.step, "key": command.key, "reason": command.reason}
        append_event(tx, command.run, EventType.CHECKPOINT_QUARANTINED, data)
    return tx.value("SELECT count(*) FROM quarantine WHERE run = ? AND step = ?", command.run, command.step)


_SUCCEEDED = """
UPDATE runs SET state = 'succeeded', result = j.value->>3, progress = j.value->>7, finished = ?2, error = NULL,
                lease_until = NULL
FROM json_each(?1) j WHERE runs.id = j.value->>0
"""


def settle(tx: Transaction, commands: list[Settle]) -> list[Any]:
    return _fenced(tx, commands, _write_settlements)


def _write_settlements(tx: Transaction, commands: list[Settle], batch: str) -> None:
    last = [c.last for c in commands if c.last is not None]
    if last:
        _write_checkpoints(tx, last, pack(last))
    succeeded = [c for c in commands if c.outcome == "succeeded"]
    if succeeded:
        tx.execute(_SUCCEEDED, (batch if len(succeeded) == len(commands) else pack(succeeded), tx.now))
        append_events(tx, [(c.run, EventType.COMPLETED, "{}") for c in succeeded])
    for command in commands:
        if command.outcome != "succeeded":
            _end_attempt(tx, command)


def _end_attempt(tx: Transaction, command: Settle) -> None:
    tx.execute(
        "UPDATE runs SET progress = ?, lease_until = NULL, error = ? WHERE id = ?",
        (command.progress, command.error, command.run),
    )
    error = decode(command.error) if command.error else None
    if command.outcome == "retry" and tx.value("SELECT attempts < attempt_limit FROM runs WHERE id = ?", command.run):
        available = tx.now + command.delay if command.delay > 0 else None
        _requeue(tx, command.run, available)
        append_event(tx, command.run, EventType.RETRYING, {"delay": command.delay, "error": error})
    elif command.outcome == "handover":
        _requeue(tx, command.run, None, give_back=1)
        append_event(tx, command.run, EventType.HANDED_OVER)
    elif command.outcome == "paused":
        tx.execute(
            "UPDATE runs SET state = 'paused', attempts = attempts - 1, reason = ? WHERE id = ?",
            (command.reason, command.run),
        )
        append_event(tx, command.run, EventType.PAUSED, {"reason": command.reason})
    else:
        fail(tx, command.run, command.error)


def _requeue(tx: Transaction, run: str, available: float | None, give_back: int = 0) -> None:
    tx.execute(
        "UPDATE runs SET state = 'queued', available = ?, attempts = attempts - ? WHERE id = ?",
        (available, give_back, run),
    )


def fail(tx: Transaction, run: str, error: str | None) -> None:
    """The run ends as failed: one terminal event, and one dead letter unless its lane just goes on."""
    lane = tx.one("SELECT l.sort, l.head FROM runs r JOIN lanes l ON l.name = r.lane WHERE r.id = ?", run)
    fifo_head = lane[1] if lane and lane[0] == "fifo" else None
    tx.execute(
        "UPDATE runs SET state = 'failed', error = ?, finished = ?, lease_until = NULL, holds_lane = ? WHERE id = ?",
        (error, tx.now, fifo_head == "block", run),
    )
    append_event(tx, run, EventType.FAILED, {"error": decode(error) if error else None})
    if fifo_head != "skip":
        bury_run(tx, run)
