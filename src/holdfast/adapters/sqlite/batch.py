"""A batch of commands in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from holdfast.adapters.sqlite import searches
from holdfast.adapters.sqlite.facts import SqliteFacts
from holdfast.model.clock import Clock
from holdfast.model.commands import Claim, Command, ConfirmOutbox, ReadOutbox, Reply
from holdfast.model.event import Event
from holdfast.model.machine import decide
from holdfast.model.machine.facts import Now


def apply(db: sqlite3.Connection, clock: Clock, commands: Sequence[Command[Any]]) -> list[Reply]:
    if _finds_nothing(db, clock, commands):
        return [[]]
    db.execute("BEGIN IMMEDIATE")
    try:
        replies = decide_all(db, Now(clock.now(), clock.monotonic()), commands)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return replies


def _finds_nothing(db: sqlite3.Connection, clock: Clock, commands: Sequence[Command[Any]]) -> bool:
    """An idle worker looks without taking the lock that busy ones need. What comes a moment later
    wakes it."""
    if len(commands) != 1 or type(commands[0]) is not Claim:
        return False
    return not searches.has_work(db, commands[0], clock.monotonic())


def decide_all(db: sqlite3.Connection, now: Now, commands: Sequence[Command[Any]]) -> list[Reply]:
    facts = SqliteFacts(db, now)
    facts.prefetch(commands)
    replies: list[Reply] = []
    for command in commands:
        if type(command) is ReadOutbox or type(command) is ConfirmOutbox:
            facts.flush()
            replies.append(_outbox(db, command))
            continue
        decision = decide(command, facts, now)
        for change in decision.changes:
            facts.write(change)
        replies.append(decision.reply)
    facts.flush()
    return replies


_OUTBOX = """
SELECT e.run, e.seq, e.type, e.at, e.data, r.tenant, r.pipeline, e.position
FROM events e JOIN runs r ON r.id = e.run
WHERE e.position > coalesce(
    (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'outbox_confirmed'), 0)
ORDER BY e.position LIMIT ?
"""

_CONFIRM = """
INSERT INTO meta (name, value) VALUES ('outbox_confirmed', ?1) ON CONFLICT (name) DO UPDATE
SET value = excluded.value WHERE CAST(value AS INTEGER) < CAST(excluded.value AS INTEGER)
"""


def _outbox(db: sqlite3.Connection, command: ReadOutbox | ConfirmOutbox) -> list[Event] | None:
    if isinstance(command, ReadOutbox):
        return [Event(*row) for row in db.execute(_OUTBOX, (command.limit,))]
    db.execute(_CONFIRM, (str(command.position),))
    return None
