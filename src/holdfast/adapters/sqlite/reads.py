"""The reads that people need, on a connection of their own: readers never wait for the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.adapters.sqlite.statements import RUN_COLUMNS, is_live, lasts, pack, quoted
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.machine.facts import BrokenRun, Now, RunFacts
from holdfast.model.run import Run
from holdfast.ports.records import Record, RecordPage
from holdfast.ports.store import (
    Audit,
    DeadLetter,
    LaneInfo,
    RunFilter,
    StoredLog,
    letter_attributes,
)

_RUN = quoted(RUN_COLUMNS)
_ID, _SEQ = (RUN_COLUMNS.index(name) for name in ("id", "seq"))

LOCK_HELD = f"token IS NOT NULL AND {lasts(':mono')}"


def facts(row: Sequence[Any]) -> RunFacts:
    """SQLite keeps anything in any column: what is not of its type is damage."""
    try:
        return msgspec.convert(row, RunFacts, strict=False)  # booleans are numbers
    except msgspec.MsgspecError as error:
        id, seq = row[_ID], row[_SEQ]
        return BrokenRun.of(
            id if isinstance(id, str) else repr(id), seq if isinstance(seq, int) else 0, error
        )


def run(db: sqlite3.Connection, id: str) -> Run | None:
    row = db.execute(f"SELECT {_RUN} FROM runs WHERE id = ?", (id,)).fetchone()
    return facts(row).view() if row else None


def over(db: sqlite3.Connection, ids: Sequence[str]) -> list[Run]:
    sql = (
        f"SELECT {_RUN} FROM runs WHERE id IN (SELECT value FROM json_each(?)) "
        "AND state IN ('succeeded', 'failed', 'cancelled')"
    )
    return [facts(row).view() for row in db.execute(sql, (pack(ids),))]


def unique_runs(db: sqlite3.Connection) -> list[Run]:
    sql = (
        f"SELECT {_RUN} FROM runs "
        "WHERE \"unique\" AND state IN ('queued', 'running', 'paused') ORDER BY seq"
    )
    return [facts(row).view() for row in db.execute(sql)]


_LABELLED = "SELECT l.seq FROM labels l WHERE l.name = ? AND l.value = ?"


def _condition_of(where: RunFilter) -> tuple[str, list[Any]]:
    parts: list[str] = ["true"]
    values: list[Any] = []
    for column in ("tenant", "pipeline", "state", "lane", "key"):
        value = getattr(where, column)
        if value is not None:
            parts.append(f"{column} = ?")
            values.append(value)
    if where.id_prefix is not None:
        parts.append("id >= ? AND id < ?")
        values += [where.id_prefix, where.id_prefix + "\U0010ffff"]
    for label in where.labels.items():
        if where.tenant is None:
            parts.append(f"EXISTS ({_LABELLED} AND l.tenant = runs.tenant AND l.seq = runs.seq)")
            values += label
        else:
            parts.append(f"seq IN ({_LABELLED} AND l.tenant = ?)")
            values += [*label, where.tenant]
    return " AND ".join(parts), values


def runs(db: sqlite3.Connection, where: RunFilter, limit: int, before: int | None) -> list[Run]:
    condition, values = _condition_of(where)
    sql = f"SELECT {_RUN} FROM runs WHERE {condition} AND seq < ? ORDER BY seq DESC LIMIT ?"
    return [facts(row).view() for row in db.execute(sql, (*values, before or 1 << 62, limit))]


def count(db: sqlite3.Connection, where: RunFilter) -> dict[str, int]:
    condition, values = _condition_of(where)
    return dict(
        db.execute(
            f"SELECT state, count(*) FROM runs WHERE {condition} GROUP BY state", values
        ).fetchall()
    )


def checkpoints(db: sqlite3.Connection, run: str, step: str | None) -> list[Checkpoint]:
    sql = (
        "SELECT step, key, value, checksum, schema, fingerprint, record, epoch FROM checkpoints "
        "WHERE run = ?1 AND (?2 IS NULL OR step = ?2) ORDER BY step, key"
    )
    return [Checkpoint(*row) for row in db.execute(sql, (run, step))]


def quarantined(db: sqlite3.Connection, run: str) -> list[tuple[str, str, str]]:
    return db.execute(
        "SELECT step, key, reason FROM quarantine WHERE run = ? ORDER BY id", (run,)
    ).fetchall()


def history(db: sqlite3.Connection, run: str) -> list[Event]:
    sql = (
        "SELECT e.run, e.seq, e.type, e.at, e.data, r.tenant, r.pipeline, e.position "
        "FROM events e JOIN runs r ON r.id = e.run WHERE e.run = ? ORDER BY e.seq"
    )
    return [Event(*row) for row in db.execute(sql, (run,))]


_OUTBOX = """
SELECT e.run, e.seq, e.type, e.at, e.data, coalesce(r.tenant, d.tenant), coalesce(r.pipeline, ''),
       e.position
FROM events e LEFT JOIN runs r ON r.id = e.run LEFT JOIN dead_letters d ON d.id = e.run
WHERE e.position > ? AND e.run <> '' ORDER BY e.position LIMIT ?
"""


def outbox(db: sqlite3.Connection, after: int, limit: int) -> list[Event]:
    return [Event(*row) for row in db.execute(_OUTBOX, (after, limit))]


_RECORDS = f"""
SELECT key, value, version, updated FROM records
WHERE key >= ?1 AND key < ?1 || char(0x10ffff) AND key > ?2
  AND {is_live("?3")}
ORDER BY key LIMIT ?4
"""


def records(db: sqlite3.Connection, now: Now, prefix: str, after: str, limit: int) -> RecordPage:
    rows = db.execute(_RECORDS, (prefix, after, now.mono, limit))
    return RecordPage([Record(*row) for row in rows], now.wall)


def logs(db: sqlite3.Connection, run: str, after: int, limit: int) -> list[StoredLog]:
    sql = (
        "SELECT at, level, step, message, fields FROM logs WHERE run = ? ORDER BY id LIMIT ? "
        "OFFSET ?"
    )
    return [StoredLog(*row) for row in db.execute(sql, (run, limit, after))]


_LETTER = """
SELECT d.id, d.source, d.reason, coalesce(d.body, CAST(r.input AS BLOB)), d.attributes, d.tenant,
       d.created, d.run, d.closed, d.resolution
FROM dead_letters d LEFT JOIN runs r ON r.id = d.run
"""


def letter(row: Sequence[Any]) -> DeadLetter:
    id, source, reason, body, attributes, *rest = row
    return DeadLetter(id, source, reason, body, letter_attributes(attributes), *rest)


def dead_letters(
    db: sqlite3.Connection,
    tenant: str | None,
    open_only: bool,
    limit: int,
    behind: tuple[float, str] | None,
) -> list[DeadLetter]:
    sql = (
        f"{_LETTER} WHERE (?1 IS NULL OR d.tenant = ?1) "
        f"{'AND (d.created, d.id) < (?3, ?4) ' if behind else ''}"
        f"{'AND d.closed IS NULL' if open_only else ''} ORDER BY d.created DESC, d.id DESC LIMIT ?2"
    )
    return [letter(row) for row in db.execute(sql, (tenant, limit, *(behind or ())))]


def dead_letter(db: sqlite3.Connection, id: str) -> DeadLetter | None:
    row = db.execute(f"{_LETTER} WHERE d.id = ?", (id,)).fetchone()
    return letter(row) if row else None


def message_letters(db: sqlite3.Connection, after: str | None, limit: int) -> list[DeadLetter]:
    """Those of messages, by id."""
    sql = f"{_LETTER} WHERE d.run IS NULL AND (?1 IS NULL OR d.id > ?1) ORDER BY d.id LIMIT ?2"
    return [letter(row) for row in db.execute(sql, (after, limit))]


def letter_event(db: sqlite3.Connection, letter: DeadLetter) -> Event:
    sql = "SELECT type, at, data, position FROM events WHERE run = ? AND seq = 1"
    kind, at, data, position = db.execute(sql, (letter.id,)).fetchone()
    return Event(letter.id, 1, kind, at, data, letter.tenant, "", position)


def locks(db: sqlite3.Connection, now: Now) -> list[LockInfo]:
    sql = (
        f"SELECT name, epoch, owner, acquired, lease_until - :mono FROM locks WHERE {LOCK_HELD} "
        "ORDER BY name"
    )
    return [LockInfo(*row) for row in db.execute(sql, {"mono": now.mono})]


_LANES = f"""
SELECT l.name, l."order", l.head,
       (SELECT count(*) FROM runs r WHERE r.lane = l.name AND r.state = 'queued'),
       (SELECT count(*) FROM runs r WHERE r.lane = l.name AND r.state = 'running'),
       k.owner, coalesce(k.epoch, 0),
       (SELECT r.id FROM runs r WHERE r.lane = l.name AND r.holds_lane),
       (SELECT count(*) FROM runs r
        WHERE r.lane = l.name AND r.state = 'queued' AND r.due > :mono),
       (SELECT r.created FROM runs r
        WHERE r.lane = l.name AND r.state = 'queued' AND (r.due IS NULL OR r.due <= :mono)
        ORDER BY r.seq LIMIT 1)
FROM (SELECT name, "order", head FROM lanes
      UNION ALL
      SELECT DISTINCT lane, 'parallel', 'dead-letter' FROM runs
      WHERE state IN ('queued', 'running') AND lane NOT IN (SELECT name FROM lanes)) l
LEFT JOIN (SELECT name, owner, epoch FROM locks WHERE {LOCK_HELD}) k ON k.name = 'lane:' || l.name
ORDER BY l.name
"""


def lanes(db: sqlite3.Connection, now: Now) -> list[LaneInfo]:
    return [LaneInfo(*row) for row in db.execute(_LANES, {"mono": now.mono})]


def audit(db: sqlite3.Connection, limit: int) -> list[Audit]:
    sql = "SELECT at, actor, action, target, reason FROM audit ORDER BY id DESC LIMIT ?"
    return [Audit(*row) for row in db.execute(sql, (limit,))]
