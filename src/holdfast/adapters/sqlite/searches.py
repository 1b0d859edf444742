"""Finding runs that nobody has named: what can be claimed, whose lease has ended, what is old."""

from __future__ import annotations

import sqlite3

from holdfast.adapters.sqlite.statements import (
    RUN_COLUMNS,
    SMALL_COLUMNS,
    as_array,
    pack,
    select_runs,
)
from holdfast.model.commands import Claim, Prune
from holdfast.model.machine.facts import Now, RunFacts

_HAS_WORK = """
SELECT 1 FROM runs WHERE lane = ?1 AND state = 'queued' AND due IS NULL
UNION ALL
SELECT 1 FROM runs WHERE state = 'queued' AND due <= ?2
LIMIT 1
"""


def has_work(db: sqlite3.Connection, claim: Claim, mono: float) -> bool:
    """Whether a claim might find anything: most find nothing, and this takes no lock."""
    return db.execute(_HAS_WORK, (claim.lane, mono)).fetchone() is not None


_END_DELAYS = "UPDATE runs SET due = NULL, available = NULL WHERE state = 'queued' AND due <= ?"

_READY = f"""
SELECT {as_array(RUN_COLUMNS)} FROM (
    SELECT * FROM runs WHERE lane = ?1 AND state = 'queued' AND due IS NULL
    AND pipeline IN (SELECT value FROM json_each(?2)) ORDER BY priority DESC, seq LIMIT ?3) r
"""


def ready(db: sqlite3.Connection, claim: Claim, now: Now) -> list[RunFacts]:
    db.execute(_END_DELAYS, (now.mono,))
    return select_runs(db, _READY, (claim.lane, pack(claim.pipelines), max(0, claim.limit)))


_HEAD = f"""
SELECT {as_array(RUN_COLUMNS)} FROM (
    SELECT * FROM runs WHERE lane = ?1 AND state = 'queued'
    AND NOT EXISTS (SELECT 1 FROM runs WHERE lane = ?1 AND (state = 'running' OR holds_lane))
    ORDER BY seq LIMIT 1) r
"""


def fifo_head(db: sqlite3.Connection, lane: str) -> list[RunFacts]:
    return select_runs(db, _HEAD, (lane,))


_ENDED = f"""
SELECT {as_array(SMALL_COLUMNS)} FROM (
    SELECT * FROM runs
    WHERE state = 'running' AND (lease_until <= ?1 OR lease_until > ?1 + lease_ttl)
    ORDER BY lease_until, seq LIMIT ?2) r
"""


def ended_leases(db: sqlite3.Connection, limit: int, now: Now) -> list[RunFacts]:
    return select_runs(db, _ENDED, (now.mono, limit))


_EXPIRED = f"""
SELECT {as_array(SMALL_COLUMNS)} FROM (
    SELECT * FROM runs
    WHERE finished IS NOT NULL AND NOT holds_lane
      AND finished <= ?1 - iif(state = 'failed', ?3, ?2)
      AND NOT (?4 > 0 AND EXISTS (SELECT 1 FROM events e WHERE e.run = runs.id AND e.position > ?4))
    ORDER BY finished, seq LIMIT ?5) r
"""


def expired(db: sqlite3.Connection, prune: Prune, now: Now) -> list[RunFacts]:
    sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'outbox_confirmed'"
    row = db.execute(sql).fetchone()
    confirmed = row[0] if row else 0
    limits = (now.wall, prune.keep, prune.keep_failed, confirmed, prune.limit)
    return select_runs(db, _EXPIRED, limits)
