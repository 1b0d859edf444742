"""One transaction: many commands applied in a few statements.

The interpreter lock is given back while SQLite works and asked for again after every statement, and
a busy event loop makes each of these turns cost up to milliseconds. So a batch is few statements,
whatever its size: reads and updates unpack one JSON array with `json_each`, inserts carry many rows
in one VALUES list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

MAX_ROWS = 128
"""Rows of one INSERT: well below SQLite's limit of parameters for every table here."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Transaction:
    """A connection inside BEGIN IMMEDIATE … COMMIT, with the two clocks read once."""

    __slots__ = ("connection", "execute", "mono", "now")

    def __init__(self, connection: sqlite3.Connection, now: float, mono: float) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.now = now
        self.mono = mono

    def one(self, sql: str, *parameters: Any) -> Any:
        """The only row, or None."""
        return self.execute(sql, parameters).fetchone()

    def value(self, sql: str, *parameters: Any) -> Any:
        """The only column of the only row, or None."""
        row = self.execute(sql, parameters).fetchone()
        return row[0] if row else None


def pack(values: Sequence[Any]) -> str:
    """The JSON array that a statement unpacks with json_each(?1)."""
    return encode(values).decode()


HELD = "r.state = 'running' AND r.lease_until > :mono AND r.lease_until <= :mono + r.lease_ttl"
"""A lease that has not ended. One that ends later than any lease can was granted before the host
was restarted."""

_STANDING = f"""
SELECT json_group_array(json_array(
    r.id IS NOT NULL AND r.epoch = j.value->>1 AND {HELD},
    (SELECT max(e.seq) FROM events e WHERE e.run = j.value->>0),
    EXISTS (SELECT 1 FROM checkpoints c
            WHERE c.run = j.value->>0 AND c.step = j.value->>2 AND c.key = '' AND c.epoch = j.value->>1)))
FROM json_each(:batch) j LEFT JOIN runs r ON r.id = j.value->>0
"""


def standing(
    tx: Transaction, held: Sequence[tuple[str, int, str | None]]
) -> list[tuple[int, int, int]]:
    """For each (run, epoch, step): whether the lease holds, the number of the run's last event, and
    whether this epoch has saved that step before."""
    found = tx.execute(_STANDING, {"batch": pack(held), "mono": tx.mono}).fetchone()[0]
    return decode(found)


def holds(tx: Transaction, run: str, epoch: int) -> bool:
    """Whether this epoch still holds the run's lease."""
    sql = f"SELECT 1 FROM runs r WHERE r.id = :run AND r.epoch = :epoch AND {HELD}"
    return tx.execute(sql, {"run": run, "epoch": epoch, "mono": tx.mono}).fetchone() is not None


_EVENTS = "INSERT INTO events (run, seq, type, at, data) VALUES "


def append_numbered(tx: Transaction, events: list[tuple[str, int, str, float, str]]) -> None:
    """Write (run, seq, type, at, data) facts whose numbers follow from `standing`."""
    insert_rows(tx, _EVENTS, events)


@lru_cache(maxsize=256)
def _insert(head: str, width: int, count: int) -> str:
    row = "(" + ", ".join("?" * width) + ")"
    return head + ", ".join([row] * count)


def insert_rows(tx: Transaction, head: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Insert rows with few statements: as many as a power of two at a time, so that few texts are
    ever prepared."""
    done = inserted = 0
    while done < len(rows):
        count = min(MAX_ROWS, 1 << (len(rows) - done).bit_length() - 1)
        chunk = rows[done : done + count]
        values = [value for row in chunk for value in row]
        inserted += tx.execute(_insert(head, len(chunk[0]), count), values).rowcount
        done += count
    return inserted


def append_event(
    tx: Transaction, run: str, kind: str, data: dict[str, Any] | str | None = None
) -> None:
    text = data if isinstance(data, str) else encode(data or {}).decode()
    tx.execute(
        "INSERT INTO events (run, seq, type, at, data) "
        "SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4 FROM events WHERE run = ?1",
        (run, kind, tx.now, text),
    )


def write_audit(tx: Transaction, actor: str, action: str, target: str, reason: str) -> None:
    tx.execute(
        "INSERT INTO audit (at, actor, action, target, reason) VALUES (?, ?, ?, ?, ?)",
        (tx.now, actor, action, target, reason),
    )
