"""Finds runs by their state: those that can be claimed, whose lease has ended, or that are old."""

from __future__ import annotations

import sqlite3
from collections import Counter

from holdfast.adapters.sqlite.statements import (
    RUN_COLUMNS,
    SMALL_COLUMNS,
    as_array,
    decode,
    lasts,
    pack,
    select_runs,
)
from holdfast.model.commands import EXAMINED, Claim, Prune
from holdfast.model.machine.facts import Now, RunFacts, WaitingTenant

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

# Tenants that wait, each found by one look into the index: behind the one served last, then from
# the first on. And the limits of tenants, which are few.
_TURNS = """
WITH RECURSIVE half (low, high) AS (VALUES (:after, NULL), ('', :after)),
turn (low, high, tenant) AS (
    SELECT low, high, low FROM half
    UNION ALL
    SELECT low, high, (
        SELECT r.tenant FROM runs r
        WHERE r.lane = :lane AND r.state = 'queued' AND r.due IS NULL
          AND r.tenant > turn.tenant AND (turn.high IS NULL OR r.tenant <= turn.high)
          AND r.pipeline IN (SELECT value FROM json_each(:pipelines))
        ORDER BY r.tenant LIMIT 1)
    FROM turn WHERE turn.tenant IS NOT NULL
    ORDER BY 2  -- the first half first: NULL sorts before all else
    LIMIT :most)
SELECT json_array(
    (SELECT json_group_array(tenant) FROM turn WHERE tenant IS NOT NULL AND tenant <> low),
    (SELECT json_group_array(json_array(tenant, running)) FROM tenants))
"""

_RUNNING = """
SELECT json_group_array(json_array(tenant, lane = ?1, count)) FROM (
    SELECT tenant, lane, count(*) AS count FROM runs WHERE state = 'running' GROUP BY tenant, lane)
"""

_READY = f"""
SELECT {as_array(RUN_COLUMNS)} FROM (
    SELECT * FROM runs WHERE lane = ?1 AND tenant = ?2 AND state = 'queued' AND due IS NULL
    AND pipeline IN (SELECT value FROM json_each(?3)) ORDER BY priority DESC, seq LIMIT ?4) r
"""


def waiting(db: sqlite3.Connection, claim: Claim, now: Now) -> list[WaitingTenant]:
    """Tenants in turn, those with the fewest running runs first; not more than can be served."""
    db.execute(_END_DELAYS, (now.mono,))
    pipelines = pack(claim.pipelines)
    turns, limits = _turns(db, claim, pipelines)
    running: Counter[str] = Counter()
    room: dict[str, int] = {}
    if len(turns) > 1 or limits:
        running, room = _occupancy(db, claim.lane, limits)
    open_turns = [tenant for tenant in turns if room.get(tenant) != 0]
    first = sorted(open_turns, key=lambda tenant: running[tenant])[: max(0, claim.limit)]
    return [
        WaitingTenant(
            tenant,
            running[tenant],
            room.get(tenant),
            select_runs(db, _READY, (claim.lane, tenant, pipelines, claim.limit)),
        )
        for tenant in first
    ]


def _turns(
    db: sqlite3.Connection, claim: Claim, pipelines: str
) -> tuple[list[str], dict[str, int]]:
    parameters = {
        "after": claim.after,
        "lane": claim.lane,
        "pipelines": pipelines,
        "most": EXAMINED + 4,  # the beginnings and ends of both halves are rows, too
    }
    turns, limits = decode(db.execute(_TURNS, parameters).fetchone()[0])
    return turns, dict(limits)


def _occupancy(
    db: sqlite3.Connection, lane: str, limits: dict[str, int]
) -> tuple[Counter[str], dict[str, int]]:
    """The running runs of each tenant in a lane, and how many more those with a limit may have."""
    in_lane: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for tenant, is_here, count in decode(db.execute(_RUNNING, (lane,)).fetchone()[0]):
        everywhere[tenant] += count
        in_lane[tenant] += count if is_here else 0
    return in_lane, {name: max(0, most - everywhere[name]) for name, most in limits.items()}


def room(db: sqlite3.Connection, tenant: str) -> int | None:
    row = db.execute("SELECT running FROM tenants WHERE tenant = ?", (tenant,)).fetchone()
    return _occupancy(db, "", {tenant: row[0]})[1][tenant] if row else None


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
    WHERE state = 'running' AND NOT ({lasts("?1")})
    ORDER BY lease_until, seq LIMIT ?2) r
"""


def ended_leases(db: sqlite3.Connection, limit: int, now: Now) -> list[RunFacts]:
    return select_runs(db, _ENDED, (now.mono, limit))


_EXPIRED = f"""
SELECT {as_array(SMALL_COLUMNS)} FROM (
    SELECT * FROM runs
    WHERE finished IS NOT NULL AND NOT holds_lane
      AND finished <= ?1 - iif(state = 'failed', ?3, ?2)
      AND (?4 IS NULL
           OR NOT EXISTS (SELECT 1 FROM events e WHERE e.run = runs.id AND e.position > ?4))
    ORDER BY finished, seq LIMIT ?5) r
"""


def expired(db: sqlite3.Connection, prune: Prune, now: Now) -> list[RunFacts]:
    limits = (now.wall, prune.keep, prune.keep_failed, prune.sent, prune.limit)
    return select_runs(db, _EXPIRED, limits)
