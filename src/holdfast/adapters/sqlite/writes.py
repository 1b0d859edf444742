"""Collects changes by table, and writes them in few statements."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import astuple

from holdfast.adapters.sqlite.statements import (
    RUN_COLUMNS,
    Row,
    encode,
    insert,
    insert_into,
    pack,
    quoted,
    update_runs,
)
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import RUN_LETTER
from holdfast.model.machine import changes as ch
from holdfast.model.machine.facts import Now, RecordFacts, RunFacts

NEW_RUN_COLUMNS = tuple(name for name in RUN_COLUMNS if name != "seq")

_EVENTS = insert_into("events", ("run", "seq", "type", "at", "data"))
_RUNS = insert_into("runs", NEW_RUN_COLUMNS)
_CHECKPOINTS = insert_into(
    "checkpoints", ("run", *Checkpoint.__struct_fields__), "INSERT OR REPLACE"
)
_LOGS = insert_into("logs", ("run", "at", "level", "step", "message", "fields"))
_AUDIT = insert_into("audit", ("at", "actor", "action", "target", "reason"))
_LOCKS = insert_into(
    "locks",
    ("name", "epoch", "token", "owner", "acquired", "lease_until", "lease_ttl"),
    "INSERT OR REPLACE",
)

_RECORDS = insert_into("records", RecordFacts.__struct_fields__, "INSERT OR REPLACE")

_LABELS = """
INSERT INTO labels (tenant, name, value, seq)
SELECT r.tenant, label.key, label.value, r.seq
FROM json_each(?) id JOIN runs r ON r.id = id.value, json_each(r.labels) label
"""

_FORGET_LABELS = """
DELETE FROM labels WHERE (tenant, name, value, seq) IN (
    SELECT r.tenant, label.key, label.value, r.seq
    FROM runs r, json_each(r.labels) label WHERE r.id = ?)
"""

_QUARANTINE = """
INSERT INTO quarantine (run, step, key, reason, value, at)
SELECT run, step, key, ?4, value, ?5 FROM checkpoints WHERE run = ?1 AND step = ?2 AND key = ?3
"""

_OPEN_LETTER = """
INSERT INTO dead_letters (id, source, reason, attributes, tenant, run, body, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
SET reason = excluded.reason, attributes = excluded.attributes, closed = NULL, resolution = NULL
"""

RUN_PARTS = ("checkpoints", "events", "logs", "quarantine")


class Writes:
    """What is collected: rows by table, and the runs that were added or changed. Runs are written
    as they are when `flush` is called."""

    def __init__(self, db: sqlite3.Connection, now: Now) -> None:
        self._db = db
        self._now = now
        self._is_empty = True
        self._added: dict[str, RunFacts] = {}
        self._changed: dict[str, tuple[RunFacts, dict[str, None]]] = {}
        self._events: list[Row] = []
        self._checkpoints: dict[tuple[str, str, str], Row] = {}
        self._logs: list[Row] = []
        self._audit: list[Row] = []
        self._locks: dict[str, Row] = {}

    def add(self, change: ch.Change, runs: Mapping[str, RunFacts | None]) -> None:
        """Collect a change; `runs` are the facts after it."""
        self._is_empty = False
        match change:
            case ch.AddRun():
                self._added[change.run.id] = change.run
                for copied in change.checkpoints:
                    self._put_checkpoint(change.run.id, copied, epoch=0)
            case ch.ChangeRun():
                self._touch(runs, change.run, *change.fields)
            case ch.AddEvent():
                run = self._touch(runs, change.run, "events")
                row = (change.run, run.events, change.type, self._now.wall, change.data)
                self._events.append(row)
            case ch.AddLetterEvent():
                row = (change.letter, 1, change.type, self._now.wall, change.data)
                self._events.append(row)
            case ch.PutCheckpoint():
                self._put_checkpoint(change.run, change.checkpoint)
            case ch.AddLogLine():
                line = (change.level, change.step, change.message, change.fields)
                self._logs.append((change.run, self._now.wall, *line))
            case ch.AddAudit():
                entry = (change.actor, change.action, change.target, change.reason)
                self._audit.append((self._now.wall, *entry))
            case ch.PutLock():
                self._locks[change.lock.name] = astuple(change.lock)
            case _:
                self.flush()
                AT_ONCE[type(change)](self, change)

    def _touch(self, runs: Mapping[str, RunFacts | None], id: str, *fields: str) -> RunFacts:
        run = runs[id]
        assert run is not None
        if id not in self._added:
            self._changed.setdefault(id, (run, {}))[1].update(dict.fromkeys(fields))
        return run

    def _put_checkpoint(self, run: str, saved: Checkpoint, *, epoch: int | None = None) -> None:
        *fields, own_epoch = astuple(saved)
        row = (run, *fields, own_epoch if epoch is None else epoch)
        self._checkpoints[run, saved.step, saved.key] = row

    # --- writing ---

    def flush(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        self._write_runs()
        insert(self._db, _EVENTS, self._events)
        insert(self._db, _CHECKPOINTS, list(self._checkpoints.values()))
        insert(self._db, _LOGS, self._logs)
        insert(self._db, _AUDIT, self._audit)
        insert(self._db, _LOCKS, list(self._locks.values()))
        for collected in (
            self._events, self._checkpoints, self._logs, self._audit, self._locks,
        ):  # fmt: skip
            collected.clear()

    def _write_runs(self) -> None:
        rows = [
            tuple(getattr(run, name) for name in NEW_RUN_COLUMNS) for run in self._added.values()
        ]
        insert(self._db, _RUNS, rows)
        labelled = [run.id for run in self._added.values() if run.labels]
        if labelled:
            self._db.execute(_LABELS, (pack(labelled),))
        alike: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
        for run, fields in self._changed.values():
            alike[tuple(fields)].append((run.id, *(getattr(run, name) for name in fields)))
        for fields, changed in alike.items():
            update_runs(self._db, fields, changed)
        self._added.clear()
        self._changed.clear()

    # --- rare changes, written at once ---

    def _move_to_quarantine(self, change: ch.MoveToQuarantine) -> None:
        checkpoint = (change.run, change.step, change.key)
        self._db.execute(_QUARANTINE, (*checkpoint, change.reason, self._now.wall))
        self._db.execute(
            "DELETE FROM checkpoints WHERE run = ? AND step = ? AND key = ?", checkpoint
        )

    def _open_letter(self, change: ch.OpenLetter) -> None:
        attributes = encode(change.attributes).decode()
        columns = (change.id, change.source, change.reason, attributes, change.tenant, change.run)
        self._db.execute(_OPEN_LETTER, (*columns, change.body, self._now.wall))

    def _close_letter(self, change: ch.CloseLetter) -> None:
        sql = "UPDATE dead_letters SET closed = ?, resolution = ? WHERE id = ?"
        self._db.execute(sql, (self._now.wall, change.resolution, change.id))

    def _put_lane(self, change: ch.PutLane) -> None:
        sql = f"INSERT OR REPLACE INTO lanes ({quoted(('name', 'order', 'head'))}) VALUES (?, ?, ?)"
        self._db.execute(sql, astuple(change.lane))

    def _put_tenant(self, change: ch.PutTenant) -> None:
        self._db.execute("DELETE FROM tenants WHERE tenant = ?", (change.tenant,))
        if change.running is not None:
            self._db.execute("INSERT INTO tenants VALUES (?, ?)", astuple(change))

    def _write_record(self, change: ch.WriteRecord) -> None:
        insert(self._db, _RECORDS, [astuple(change.record)])

    def _remove_record(self, change: ch.RemoveRecord) -> None:
        self._db.execute("DELETE FROM records WHERE key = ?", (change.key,))

    def _remove_run(self, change: ch.RemoveRun) -> None:
        newest = self._db.execute("SELECT max(position) FROM events").fetchone()[0]
        self._db.execute(_FORGET_LABELS, (change.run,))
        for table in RUN_PARTS:
            self._db.execute(f"DELETE FROM {table} WHERE run = ?", (change.run,))
        letter = f"{RUN_LETTER}{change.run}"
        self._db.execute("DELETE FROM dead_letters WHERE id = ?", (letter,))
        self._db.execute("DELETE FROM runs WHERE id = ?", (change.run,))
        hold_position(self._db, newest, self._now)


AT_ONCE: dict[type, Callable[[Writes, Any], None]] = {
    ch.MoveToQuarantine: Writes._move_to_quarantine,
    ch.OpenLetter: Writes._open_letter,
    ch.CloseLetter: Writes._close_letter,
    ch.PutLane: Writes._put_lane,
    ch.PutTenant: Writes._put_tenant,
    ch.WriteRecord: Writes._write_record,
    ch.RemoveRecord: Writes._remove_record,
    ch.RemoveRun: Writes._remove_run,
}


def hold_position(db: sqlite3.Connection, newest: int, now: Now) -> None:
    """Keep a placeholder where the newest event was: SQLite would assign its number again, and a
    relay that has passed that number would never see the new event."""
    db.execute("DELETE FROM events WHERE run = '' AND position < ?", (newest,))
    db.execute(
        "INSERT OR IGNORE INTO events (position, run, seq, type, at, data) "
        "VALUES (?1, '', ?1, '', ?2, '{}')",
        (newest, now.wall),
    )
