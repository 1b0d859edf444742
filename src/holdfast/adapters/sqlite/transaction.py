"""One transaction: many commands applied in a few set-based statements.

Commands travel as one JSON array per statement and SQLite unpacks them with `json_each`. That keeps the whole
batch in one call that runs without the interpreter lock; `executemany` would give the lock back and ask for it
again for every row, and a busy event loop makes each of these turns cost milliseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

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
"""A lease that has not ended. One that ends later than any lease can was granted before the host was restarted."""

_STALE = f"""
SELECT json_group_array(j.key) FROM json_each(:batch) j LEFT JOIN runs r ON r.id = j.value->>0
WHERE r.id IS NULL OR NOT (r.epoch = j.value->>1 AND {HELD})
"""  # noqa: S608


def stale(tx: Transaction, batch: str) -> set[int]:
    """Indexes of the fenced commands (run first, epoch second) whose writer no longer holds the lease."""
    found = tx.execute(_STALE, {"batch": batch, "mono": tx.mono}).fetchone()[0]
    return set() if found == "[]" else set(decode(found))


def holds(tx: Transaction, run: str, epoch: int) -> bool:
    """Whether this epoch still holds the run's lease."""
    sql = f"SELECT 1 FROM runs r WHERE r.id = :run AND r.epoch = :epoch AND {HELD}"  # noqa: S608
    return tx.execute(sql, {"run": run, "epoch": epoch, "mono": tx.mono}).fetchone() is not None


_APPEND = """
INSERT INTO events (run, seq, type, at, data)
SELECT j.value->>0,
       coalesce((SELECT max(e.seq) FROM events e WHERE e.run = j.value->>0), 0)
           + row_number() OVER (PARTITION BY j.value->>0 ORDER BY j.key),
       j.value->>1, ?2, j.value->>2
FROM json_each(?1) j ORDER BY j.key
"""


def append_events(tx: Transaction, events: list[tuple[str, str, str]]) -> None:
    """Write (run, type, data) facts, each numbered one higher than its run's last."""
    if events:
        tx.execute(_APPEND, (pack(events), tx.now))


def append_event(tx: Transaction, run: str, kind: str, data: dict[str, Any] | str | None = None) -> None:
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
