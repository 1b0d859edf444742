"""What people and the sweeper do to runs: cancel, pause, resume, rescue, prune."""

from __future__ import annotations

import sqlite3

from holdfast.adapters.sqlite.deadletters import close
from holdfast.adapters.sqlite.execution import fail
from holdfast.adapters.sqlite.transaction import (
    Transaction,
    append_event,
    encode,
    pack,
    write_audit,
)
from holdfast.model.commands import Cancel, DefineLane, PauseRun, Prune, Refused, Resume, Sweep
from holdfast.model.event import EventType
from holdfast.model.run import ErrorInfo


def cancel(tx: Transaction, command: Cancel) -> Refused | None:
    state = tx.value("SELECT state FROM runs WHERE id = ?", command.run)
    if state not in ("queued", "running", "paused"):
        return Refused(state)
    tx.execute(
        "UPDATE runs SET state = 'cancelled', epoch = epoch + 1, finished = ?, reason = ?, "
        "lease_until = NULL, "
        "available = NULL WHERE id = ?",
        (tx.now, command.reason or None, command.run),
    )
    _note(tx, command, EventType.CANCELLED, "run.cancel")
    return None


def pause(tx: Transaction, command: PauseRun) -> Refused | None:
    state = tx.value("SELECT state FROM runs WHERE id = ?", command.run)
    if state not in ("queued", "running"):
        return Refused(state)
    tx.execute(
        "UPDATE runs SET state = 'paused', epoch = epoch + 1, attempts = attempts - (state = "
        "'running'), reason = ?, "
        "lease_until = NULL, available = NULL WHERE id = ?",
        (command.reason or None, command.run),
    )
    _note(tx, command, EventType.PAUSED, "run.pause")
    return None


def _note(tx: Transaction, command: Cancel | PauseRun, event: str, action: str) -> None:
    append_event(tx, command.run, event, {"actor": command.actor, "reason": command.reason})
    write_audit(tx, command.actor, action, command.run, command.reason)


def resume(tx: Transaction, command: Resume) -> Refused | None:
    state = tx.value("SELECT state FROM runs WHERE id = ?", command.run)
    if state not in ("paused", "failed"):
        return Refused(state)
    try:
        tx.execute(
            "UPDATE runs SET state = 'queued', available = NULL, finished = NULL, error = NULL, "
            "reason = NULL, "
            "holds_lane = 0, attempt_limit = attempts + ? WHERE id = ?",
            (command.attempts, command.run),
        )
    except sqlite3.IntegrityError:  # runs_live: another run has taken the unique slot
        other = tx.value(
            "SELECT o.id FROM runs r JOIN runs o ON o.tenant = r.tenant AND o.pipeline = "
            "r.pipeline AND o.is_unique "
            "AND o.state IN ('queued', 'running', 'paused') WHERE r.id = ?",
            command.run,
        )
        if other is None:  # refused for another reason
            raise
        return Refused(state, other)
    close(tx, f"run:{command.run}", "redriven")
    append_event(tx, command.run, EventType.RESUMED, {"actor": command.actor, "reason": ""})
    write_audit(tx, command.actor, "run.resume", command.run, "")
    return None


_ENDED = """
SELECT id, attempts, attempt_limit FROM runs
WHERE state = 'running' AND (lease_until <= ?1 OR lease_until > ?1 + lease_ttl) ORDER BY lease_until LIMIT ?2
"""


def sweep(tx: Transaction, command: Sweep) -> list[tuple[str, str]]:
    swept: list[tuple[str, str]] = []
    for run, attempts, limit in tx.execute(_ENDED, (tx.mono, command.limit)).fetchall():
        if attempts >= limit:
            fail(tx, run, encode(worker_lost(attempts)).decode())
            swept.append((run, "failed"))
        else:
            tx.execute(
                "UPDATE runs SET state = 'queued', available = NULL, lease_until = NULL WHERE id = "
                "?",
                (run,),
            )
            append_event(tx, run, EventType.WORKER_LOST, {"attempt": attempts})
            swept.append((run, "queued"))
    return swept


def worker_lost(attempts: int) -> ErrorInfo:
    return ErrorInfo(
        "WorkerLost",
        f"the worker vanished {attempts} times while it had this run; look at what kills it, then "
        "resume the run",
    )


_OLD = """
SELECT r.id, r.tenant FROM runs r
WHERE r.finished IS NOT NULL AND NOT r.holds_lane
  AND r.finished <= ?1 - iif(r.state = 'failed' OR EXISTS (
        SELECT 1 FROM dead_letters d WHERE d.run = r.id AND d.closed IS NULL), ?3, ?2)
  AND NOT (?4 > 0 AND EXISTS (SELECT 1 FROM events e WHERE e.run = r.id AND e.position > ?4))
ORDER BY r.finished LIMIT ?5
"""

_BELONGINGS = ("checkpoints", "events", "logs", "quarantine", "dead_letters")


def prune(tx: Transaction, command: Prune) -> list[tuple[str, str]]:
    confirmed = int(tx.value("SELECT value FROM meta WHERE name = 'outbox_confirmed'") or 0)
    found = tx.execute(_OLD, (tx.now, command.keep, command.keep_failed, confirmed, command.limit))
    runs = found.fetchall()
    if runs:
        newest = tx.value("SELECT max(position) FROM events")
        batch = pack([run for run, _ in runs])
        for table in _BELONGINGS:
            tx.execute(
                f"DELETE FROM {table} WHERE run IN (SELECT value FROM json_each(?))", (batch,)
            )
        tx.execute("DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?))", (batch,))
        _hold_position(tx, newest)
    return runs


def _hold_position(tx: Transaction, newest: int) -> None:
    """Keep a placeholder where the newest event was: SQLite would give its number out again, and
    the relay, which has confirmed that number, would never see the new event."""
    tx.execute("DELETE FROM events WHERE run = '' AND position < ?", (newest,))
    tx.execute(
        "INSERT OR IGNORE INTO events (position, run, seq, type, at, data) VALUES (?1, '', ?1, '', "
        "?2, '{}')",
        (newest, tx.now),
    )


def define_lane(tx: Transaction, command: DefineLane) -> str:
    tx.execute(
        "INSERT INTO lanes (name, sort, head) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
        "head = excluded.head",
        (command.name, command.order, command.head),
    )
    return tx.value("SELECT sort FROM lanes WHERE name = ?", command.name)
