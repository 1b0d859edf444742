"""What a worker does with a run: claim, renew, checkpoint, settle. All of it fenced."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.adapters.sqlite.deadletters import bury_run
from holdfast.adapters.sqlite.transaction import (
    HELD,
    Transaction,
    append_event,
    append_numbered,
    decode,
    encode,
    holds,
    insert_rows,
    pack,
    standing,
)
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
)
from holdfast.model.event import EventType

MAX_LOG_LINES = 10_000
COMPLETED = str(EventType.COMPLETED)
STEP_COMPLETED = str(EventType.STEP_COMPLETED)
STEP_SKIPPED = str(EventType.STEP_SKIPPED)

_claimed = msgspec.json.Decoder(list[Claimed], strict=False)

_COLUMNS = (
    "json_array(id, tenant, pipeline, lane, epoch + 1, attempts + 1, attempt_limit, input, "
    "progress, "
    "epoch > 0 OR inherited)"
)

_READY = f"""
SELECT json_group_array({_COLUMNS}) FROM (
    SELECT * FROM runs WHERE lane = ?1 AND state = 'queued' AND available IS NULL
    AND pipeline IN (SELECT value FROM json_each(?2)) ORDER BY priority DESC, seq LIMIT ?3)
"""

_HEAD = f"""
SELECT json_group_array({_COLUMNS}) FROM (
    SELECT * FROM (SELECT * FROM runs WHERE lane = ?1 AND state = 'queued' ORDER BY seq LIMIT 1)
    WHERE available IS NULL AND pipeline IN (SELECT value FROM json_each(?2)))
"""

_PROMOTE = (
    "UPDATE runs SET available = NULL WHERE state = 'queued' AND available IS NOT NULL AND due <= ?"
)

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
"""


_HAS_WORK = """
SELECT 1 FROM runs WHERE lane = ?1 AND state = 'queued' AND available IS NULL
UNION ALL
SELECT 1 FROM runs WHERE state = 'queued' AND available IS NOT NULL AND due <= ?2
LIMIT 1
"""


def has_work(connection: sqlite3.Connection, mono: float, command: Claim) -> bool:
    """Whether a claim might find anything: most of them find nothing, and this is the cheap way to
    know."""
    return connection.execute(_HAS_WORK, (command.lane, mono)).fetchone() is not None


def claim(tx: Transaction, command: Claim) -> list[Claimed]:
    if not has_work(tx.connection, tx.mono, command):
        return []
    tx.execute(_PROMOTE, (tx.mono,))
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
    """The longest start of the list that fits; one is always allowed, or a large input would wait
    for ever."""
    total = 0
    for index, run in enumerate(found):
        total += len(run.input.encode())
        if index and total > max_bytes:
            return found[:index]
    return found


_RENEW = f"""
UPDATE runs AS r SET lease_until = max(r.lease_until, :until), lease_ttl = max(r.lease_ttl, :ttl)
FROM json_each(:batch) j WHERE r.id = j.value->>0 AND r.epoch = j.value->>1 AND {HELD}
"""


def renew(tx: Transaction, command: Renew) -> list[tuple[str, int]]:
    found = standing(tx, [(run, epoch, None) for run, epoch in command.held])
    tx.execute(
        _RENEW,
        {
            "batch": pack(command.held),
            "until": tx.mono + command.ttl,
            "ttl": command.ttl,
            "mono": tx.mono,
        },
    )
    return [
        lease for lease, (current, _, _) in zip(command.held, found, strict=True) if not current
    ]


_CHECKPOINTS = "INSERT OR REPLACE INTO checkpoints (run, epoch, step, key, value, checksum, schema, fingerprint, record) VALUES "


class Numbers:
    """The next event number of each run in a batch, and which steps were saved before."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self.saved: set[tuple[str, str | None]] = set()

    def know(self, run: str, last: int, step: str | None, saved: int) -> None:
        self._last.setdefault(run, last)
        if saved:
            self.saved.add((run, step))

    def next(self, run: str) -> int:
        self._last[run] += 1
        return self._last[run]


def _fenced(
    tx: Transaction, commands: list[Any], write: Callable[[Transaction, list[Any], Numbers], None]
) -> list[Any]:
    """Write the commands whose lease holds; answer STALE to the others."""
    asked = [(command.run, command.epoch, _step_of(command)) for command in commands]
    found = standing(tx, asked)
    numbers = Numbers()
    accepted: list[Any] = []
    replies: list[Any] = []
    for command, (_, _, step), (current, last, saved) in zip(commands, asked, found, strict=True):
        if current:
            numbers.know(command.run, last, step, saved)
            accepted.append(command)
        replies.append(None if current else STALE)
    if accepted:
        write(tx, accepted, numbers)
    return replies


def _step_of(command: Any) -> str | None:
    """The step that a command completes, if it does."""
    saved = command.last if type(command) is Settle else command
    return saved.step if type(saved) is SaveCheckpoint and not saved.key else None


def save_checkpoints(tx: Transaction, commands: list[SaveCheckpoint]) -> list[Any]:
    return _fenced(tx, commands, _write_checkpoints)


def _write_checkpoints(tx: Transaction, commands: list[SaveCheckpoint], numbers: Numbers) -> None:
    steps = [command for command in commands if not command.key]
    if steps:
        append_numbered(
            tx, [_step_event(tx, c, numbers) for c in steps if (c.run, c.step) not in numbers.saved]
        )
    rows = [
        (c.run, c.epoch, c.step, c.key, c.value, c.checksum, c.schema, c.fingerprint, c.record)
        for c in commands
    ]
    insert_rows(tx, _CHECKPOINTS, rows)


def _step_event(
    tx: Transaction, c: SaveCheckpoint, numbers: Numbers
) -> tuple[str, int, str, float, str]:
    """One event per step and attempt: a repeated request writes none."""
    return (
        c.run,
        numbers.next(c.run),
        STEP_SKIPPED if c.skipped else STEP_COMPLETED,
        tx.now,
        c.record,
    )


def save_progress(tx: Transaction, commands: list[SaveProgress]) -> list[Any]:
    return _fenced(tx, commands, _write_progress)


def _write_progress(tx: Transaction, commands: list[SaveProgress], numbers: Numbers) -> None:
    sql = "UPDATE runs SET progress = j.value->>2 FROM json_each(?) j WHERE runs.id = j.value->>0"
    tx.execute(sql, (pack(commands),))


_LOGS = "INSERT INTO logs (run, at, level, step, message, fields) VALUES "


def log_lines(tx: Transaction, commands: list[LogLine]) -> list[Any]:
    return _fenced(tx, commands, _write_logs)


def _write_logs(tx: Transaction, commands: list[LogLine], numbers: Numbers) -> None:
    """Append, up to the limit of each run."""
    room: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []
    for c in commands:
        if c.run not in room:
            room[c.run] = MAX_LOG_LINES - tx.value("SELECT count(*) FROM logs WHERE run = ?", c.run)
        if room[c.run] > 0:
            room[c.run] -= 1
            rows.append((c.run, tx.now, c.level, c.step, c.message, c.fields))
    insert_rows(tx, _LOGS, rows)


def quarantine(tx: Transaction, command: Quarantine) -> Any:
    if not holds(tx, command.run, command.epoch):
        return STALE
    place = (command.run, command.step, command.key)
    removed = tx.one(
        "DELETE FROM checkpoints WHERE run = ? AND step = ? AND key = ? RETURNING value", *place
    )
    if removed:
        tx.execute(
            "INSERT INTO quarantine (run, step, key, reason, value, at) VALUES (?, ?, ?, ?, ?, ?)",
            (*place, command.reason, removed[0], tx.now),
        )
        data = {"step": command.step, "key": command.key, "reason": command.reason}
        append_event(tx, command.run, EventType.CHECKPOINT_QUARANTINED, data)
    return tx.value(
        "SELECT count(*) FROM quarantine WHERE run = ? AND step = ?", command.run, command.step
    )


_SUCCEEDED = """
UPDATE runs SET state = 'succeeded', result = j.value->>1, progress = j.value->>2, finished = ?2, error = NULL,
                lease_until = NULL
FROM json_each(?1) j WHERE runs.id = j.value->>0
"""


def settle(tx: Transaction, commands: list[Settle]) -> list[Any]:
    return _fenced(tx, commands, _write_settlements)


def _write_settlements(tx: Transaction, commands: list[Settle], numbers: Numbers) -> None:
    last = [command.last for command in commands if command.last is not None]
    if last:
        _write_checkpoints(tx, last, numbers)
    succeeded = [command for command in commands if command.outcome == "succeeded"]
    if succeeded:
        tx.execute(_SUCCEEDED, (pack([(c.run, c.result, c.progress) for c in succeeded]), tx.now))
        append_numbered(
            tx, [(c.run, numbers.next(c.run), COMPLETED, tx.now, "{}") for c in succeeded]
        )
    for command in commands:
        if command.outcome != "succeeded":
            _end_attempt(tx, command)


def _end_attempt(tx: Transaction, command: Settle) -> None:
    tx.execute(
        "UPDATE runs SET progress = ?, lease_until = NULL, error = ? WHERE id = ?",
        (command.progress, command.error, command.run),
    )
    error = decode(command.error) if command.error else None
    if command.outcome == "retry" and (command.deferred or _has_attempts(tx, command.run)):
        _requeue(tx, command.run, command.delay, give_back=command.deferred)
        append_event(tx, command.run, EventType.RETRYING, {"delay": command.delay, "error": error})
    elif command.outcome == "handover":
        _requeue(tx, command.run, give_back=1)
        append_event(tx, command.run, EventType.HANDED_OVER)
    elif command.outcome == "paused":
        tx.execute(
            "UPDATE runs SET state = 'paused', attempts = attempts - 1, reason = ? WHERE id = ?",
            (command.reason, command.run),
        )
        append_event(tx, command.run, EventType.PAUSED, {"reason": command.reason})
    else:
        fail(tx, command.run, command.error)


def _has_attempts(tx: Transaction, run: str) -> bool:
    return tx.value("SELECT attempts < attempt_limit FROM runs WHERE id = ?", run)


def _requeue(tx: Transaction, run: str, delay: float = 0.0, give_back: int = 0) -> None:
    tx.execute(
        "UPDATE runs SET state = 'queued', available = iif(?1 > 0, ?2 + ?1, NULL), due = ?3 + ?1, "
        "delay = ?1, "
        "attempts = attempts - ?4 WHERE id = ?5",
        (delay, tx.now, tx.mono, give_back, run),
    )


def fail(tx: Transaction, run: str, error: str | None) -> None:
    """The run ends as failed: one terminal event, and one dead letter unless its lane just goes
    on."""
    lane = tx.one(
        "SELECT l.sort, l.head FROM runs r JOIN lanes l ON l.name = r.lane WHERE r.id = ?", run
    )
    fifo_head = lane[1] if lane and lane[0] == "fifo" else None
    tx.execute(
        "UPDATE runs SET state = 'failed', error = ?, finished = ?, lease_until = NULL, holds_lane "
        "= ? WHERE id = ?",
        (error, tx.now, fifo_head == "block", run),
    )
    append_event(tx, run, EventType.FAILED, {"error": decode(error) if error else None})
    if fifo_head != "skip":
        bury_run(tx, run)
