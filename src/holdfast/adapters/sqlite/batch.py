"""A batch of commands in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from holdfast.adapters.sqlite import searches
from holdfast.adapters.sqlite.facts import SqliteFacts
from holdfast.model.clock import Clock
from holdfast.model.commands import Claim, Command
from holdfast.model.machine import decide
from holdfast.model.machine.facts import Now


def apply(db: sqlite3.Connection, clock: Clock, commands: Sequence[Command[Any]]) -> list[Any]:
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
    """Whether a claim would find nothing. An idle worker checks without the write lock, which busy
    ones need; a run that comes a moment later wakes it."""
    if len(commands) != 1 or type(commands[0]) is not Claim:
        return False
    return not searches.has_work(db, commands[0], clock.monotonic())


def decide_all(db: sqlite3.Connection, now: Now, commands: Sequence[Command[Any]]) -> list[Any]:
    facts = SqliteFacts(db, now)
    facts.prefetch(commands)
    replies: list[Any] = []
    for command in commands:
        decision = decide(command, facts, now)
        for change in decision.changes:
            facts.write(change)
        replies.append(decision.reply)
    facts.flush()
    return replies
