"""Sorting a batch of commands into few statements without changing what anybody can observe."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.adapters.sqlite import deadletters, execution, intake, locks, operations
from holdfast.adapters.sqlite.transaction import Transaction
from holdfast.model import commands as c
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Reply

TOGETHER: dict[type, Callable[[Transaction, list[Any]], list[Reply]]] = {
    c.Submit: intake.submit,
    c.SaveCheckpoint: execution.save_checkpoints,
    c.SaveProgress: execution.save_progress,
    c.LogLine: execution.log_lines,
    c.Settle: execution.settle,
}
"""Commands of which one statement applies many."""

ONCE_PER_RUN = (c.SaveProgress, c.Settle)
"""Two of these for one run do not go into one statement: the second has to see what the first
did."""

ALONE: dict[type, Callable[[Transaction, Any], Reply]] = {
    c.Claim: execution.claim,
    c.Renew: execution.renew,
    c.Quarantine: execution.quarantine,
    c.Cancel: operations.cancel,
    c.PauseRun: operations.pause,
    c.Resume: operations.resume,
    c.Sweep: operations.sweep,
    c.Prune: operations.prune,
    c.DefineLane: operations.define_lane,
    c.Acquire: locks.acquire,
    c.RenewLocks: locks.renew_locks,
    c.ReleaseLock: locks.release_lock,
    c.ForceRelease: locks.force_release,
    c.Bury: deadletters.bury,
    c.MarkRedriven: deadletters.mark_redriven,
    c.Discard: deadletters.discard,
    c.ReadOutbox: deadletters.read_outbox,
    c.ConfirmOutbox: deadletters.confirm_outbox,
}
"""Commands applied one by one: rare, or already about many runs. Nothing is moved across them."""


class Group:
    """Commands of one type that go into one statement, with their places in the batch."""

    __slots__ = ("commands", "kind", "places", "seen")

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.seen: set[Any] = set()
        self.commands: list[Any] = []
        self.places: list[int] = []

    def add(self, place: int, command: Any) -> None:
        self.commands.append(command)
        self.places.append(place)


def _concerns(command: Any) -> tuple[str, Any]:
    """The run of a command, and what it must be alone with in its statement (None: with
    nothing)."""
    if type(command) is c.SaveCheckpoint:
        return command.run, (command.run, command.step, command.key)
    if type(command) is c.Submit:
        return command.id, None
    return command.run, command.run if isinstance(command, ONCE_PER_RUN) else None


def arrange(commands: Sequence[Command]) -> list[Group]:
    """Collect commands of a type, moving one forward only past commands that concern other runs."""
    groups: list[Group] = []
    current: dict[type, int] = {}
    last_touch: dict[str, int] = {}
    for place, command in enumerate(commands):
        kind = type(command)
        if kind not in TOGETHER:
            current.clear()
            last_touch.clear()
            groups.append(Group(kind))
            groups[-1].add(place, command)
            continue
        run, identity = _concerns(command)
        index = current.get(kind)
        if index is None or index < last_touch.get(run, -1) or identity in groups[index].seen:
            index = current[kind] = len(groups)
            groups.append(Group(kind))
        last_touch[run] = index
        if identity is not None:
            groups[index].seen.add(identity)
        groups[index].add(place, command)
    return groups


def apply(connection: sqlite3.Connection, clock: Clock, commands: Sequence[Command]) -> list[Reply]:
    """Apply a batch in one transaction."""
    if _is_idle_claim(connection, clock, commands):
        return [[]]
    connection.execute("BEGIN IMMEDIATE")
    try:
        tx = Transaction(connection, clock.now(), clock.monotonic())
        replies: list[Reply] = [None] * len(commands)
        for group in arrange(commands):
            for place, reply in zip(group.places, _apply_group(tx, group), strict=True):
                replies[place] = reply
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return replies


def _is_idle_claim(
    connection: sqlite3.Connection, clock: Clock, commands: Sequence[Command]
) -> bool:
    """An idle worker looks without taking the lock that busy ones need. What comes a moment later
    rings the bell."""
    if len(commands) != 1 or type(commands[0]) is not c.Claim:
        return False
    return not execution.has_work(connection, clock.monotonic(), commands[0])


def _apply_group(tx: Transaction, group: Group) -> list[Reply]:
    together = TOGETHER.get(group.kind)
    if together is not None:
        return together(tx, group.commands)
    return [ALONE[group.kind](tx, command) for command in group.commands]
