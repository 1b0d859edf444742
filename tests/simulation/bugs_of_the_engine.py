"""Guards of the engine, each taken away once: stories have to notice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.engine import cursors, durable_call
from holdfast.engine.cursors import Cursor
from holdfast.engine.gate import Gate
from holdfast.engine.journal import Journal
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.payloads import Payloads
from holdfast.engine.relay import Relay
from holdfast.engine.worker import Worker
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.event import Event
from holdfast.model.lease import LeaseTimes

Patch = pytest.MonkeyPatch


def fingerprint_ignored(patch: Patch) -> None:
    """A stored result is reused although other code would make another one."""
    patch.setattr(durable_call, "is_outdated", lambda checkpoint, schema, fingerprint: False)


def checksum_ignored(patch: Patch) -> None:
    """A stored result is believed whatever happened to it."""
    fetch = Payloads.fetch

    async def believe(self: Payloads, stored: str, expected: str | None = None) -> str:
        return await fetch(self, stored)

    patch.setattr(Payloads, "fetch", believe)


def items_not_compared(patch: Patch) -> None:
    """A step's result is reused although its items are not those that it was made with."""
    patch.setattr(Journal, "has_items_of", lambda self, checkpoint: True)


def no_trust_margin(patch: Patch) -> None:
    """A lease is trusted until its very end, by a clock that may be slow."""
    patch.setattr(LeaseTimes, "trusted_until", lambda self, start: start + self.ttl)


def lost_lease_cancels_nothing(patch: Patch) -> None:
    """Work goes on when its lease is lost."""
    patch.setattr(Worker, "_interrupt", lambda self, lease: None)


def result_used_before_it_is_durable(patch: Patch) -> None:
    """The next step starts while the checkpoint of its input is still being written."""
    persist = Gate.persist

    async def hurry(self: Gate, command: Any) -> Any:
        if not isinstance(command, SaveCheckpoint):
            return await persist(self, command)
        writing = asyncio.create_task(persist(self, command))
        writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return None

    patch.setattr(Gate, "persist", hurry)


def retry_without_question(patch: Patch) -> None:
    """A retry starts without asking whether the run was cancelled meanwhile."""

    async def confirm(self: Gate) -> None:
        """Nobody is asked."""

    patch.setattr(Gate, "confirm", confirm)


def intervention_not_heard(patch: Patch) -> None:
    """A worker does not ask when it is notified that a lease was taken away."""
    patch.setattr(LeaseKeeper, "note_intervention", lambda self: None)


def relay_skips(patch: Patch) -> None:
    """The relay leaves out the last event of a batch."""
    deliver_all = Relay._deliver_all

    async def skip(self: Relay, events: list[Event], cursor: Cursor) -> Cursor | None:
        delivered = events[:-1] if len(events) > 1 else events
        moved = await deliver_all(self, delivered, cursor)
        if moved is None or delivered is events:
            return moved
        return await cursors.move(self._runtime.records, moved, events[-1].position)

    patch.setattr(Relay, "_deliver_all", skip)


BUGS = [
    fingerprint_ignored,
    checksum_ignored,
    items_not_compared,
    no_trust_margin,
    lost_lease_cancels_nothing,
    result_used_before_it_is_durable,
    retry_without_question,
    intervention_not_heard,
    relay_skips,
]

ABOUT_TIME = (retry_without_question, intervention_not_heard)
"""Noticed only where nothing goes wrong."""
