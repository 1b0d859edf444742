"""Guards of engine, relay and state machine, each taken away once: stories have to notice."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from holdfast.adapters.memory.documents import MemoryDocuments, _Entry
from holdfast.adapters.memory.tables import Tables
from holdfast.engine import cursors, publishing
from holdfast.engine.cursors import Cursor
from holdfast.engine.gate import Gate
from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.publishing import MessageTarget
from holdfast.engine.relay import Relay
from holdfast.errors import Transient
from holdfast.model.commands import Sweep
from holdfast.model.event import Event, EventType
from holdfast.model.machine import RULES, attempts
from holdfast.model.machine.changes import AddEvent, Decision
from holdfast.model.machine.facts import Now, RunFacts
from holdfast.model.projection import body_bytes
from holdfast.model.run import RunState

Patch = pytest.MonkeyPatch


def no_fence(patch: Patch) -> None:
    """Whoever once had the run may write to it."""

    def is_held(self: RunFacts, epoch: int, now: Now) -> bool:
        return self.state is RunState.RUNNING

    patch.setattr(RunFacts, "is_held", is_held)


def no_trust_window(patch: Patch) -> None:
    """A worker believes in its lease for ever."""
    patch.setattr(Lease, "trusted", property(lambda self: True))
    patch.setattr(Lease, "check", lambda self: None)
    patch.setattr(Lease, "lose", lambda self: None)


def refusal_ignored(patch: Patch) -> None:
    """A worker goes on although the store refused its write."""

    async def persist(self: Gate, command: Any) -> Any:
        return await self._committer.send(command)

    patch.setattr(Gate, "persist", persist)
    patch.setattr(Lease, "trusted", property(lambda self: True))
    patch.setattr(Lease, "check", lambda self: None)
    patch.setattr(Lease, "lose", lambda self: None)


def forgotten_checkpoints(patch: Patch) -> None:
    """A new attempt begins from nothing."""

    patch.setattr(Journal, "load_checkpoints", lambda self, checkpoints: [])


def keys_ignored(patch: Patch) -> None:
    """A repeated request becomes a second run."""
    patch.setattr(Tables, "run_with_key", lambda self, tenant, key: None)


def never_swept(patch: Patch) -> None:
    """Runs of dead workers stay where they are."""
    patch.setitem(RULES, Sweep, lambda command, facts, now: Decision([]))


def cursor_moved_too_early(patch: Patch) -> None:
    """The relay moves its cursor before the bus has the events."""

    deliver_all = Relay._deliver_all

    async def move_first(self: Relay, events: list[Event], cursor: Cursor) -> Cursor | None:
        moved = await cursors.move(self._runtime.records, cursor, events[-1].position)
        if moved is not None:
            await deliver_all(self, events, moved)
        return moved

    patch.setattr(Relay, "_deliver_all", move_first)


def documents_without_versions(patch: Patch) -> None:
    """A document is written over whatever is there."""

    def write(
        self: MemoryDocuments, key: str, version: str, body: bytes | None, ttl: float | None
    ) -> bool:
        self._entries[key] = _Entry(version, body, None)
        return True

    patch.setattr(MemoryDocuments, "_write", write)


def results_at_random(patch: Patch) -> None:
    """A message is made of something that is not the event's."""

    def body(event: Any) -> bytes:
        return body_bytes(event) + f" {random.random()}".encode()

    patch.setattr(publishing, "body_bytes", body)


def dead_ends_skipped(patch: Patch) -> None:
    """A projection whose endpoint is away goes on without it."""

    async def deliver(self: Relay, event: Event, generation: int) -> None:
        with suppress(Transient):
            await self._target.deliver(event, generation)

    patch.setattr(Relay, "_deliver", deliver)


def one_cursor_for_all(patch: Patch) -> None:
    """All projections share a cursor, so that each sees only a part."""
    shared = property(lambda self: "all", lambda self, name: None)
    patch.setattr(MessageTarget, "name", shared, raising=False)


def lane_not_busy(patch: Patch) -> None:
    """A fifo lane lets the next run start while one is under way."""

    def head(command: Any, lane: Any, tables: Tables, now: Now) -> list[RunFacts]:
        queued = sorted(tables.in_lane(lane.name, RunState.QUEUED), key=lambda run: run.seq)
        return [run for run in queued[:1] if is_claimable(run, command, now)]

    patch.setattr(attempts, "_head", head)


def retry_loses_its_place(patch: Patch) -> None:
    """A run that waits for its retry is overtaken."""

    def head(command: Any, lane: Any, tables: Tables, now: Now) -> list[RunFacts]:
        if any(tables.in_lane(lane.name, RunState.RUNNING)):
            return []
        queued = sorted(tables.in_lane(lane.name, RunState.QUEUED), key=lambda run: run.seq)
        return [run for run in queued if is_claimable(run, command, now)][:1]

    patch.setattr(attempts, "_head", head)


def is_claimable(run: RunFacts, command: Any, now: Now) -> bool:
    return run.pipeline in command.pipelines and (run.due is None or run.due <= now.mono)


def silent_success(patch: Patch) -> None:
    """A run succeeds without an event."""
    write = Tables.write

    def write_all_but_completed(self: Tables, change: Any, now: Now) -> None:
        if not (isinstance(change, AddEvent) and change.type == EventType.COMPLETED):
            write(self, change, now)

    patch.setattr(Tables, "write", write_all_but_completed)


BUGS = [
    no_fence,
    no_trust_window,
    refusal_ignored,
    forgotten_checkpoints,
    keys_ignored,
    never_swept,
    cursor_moved_too_early,
    documents_without_versions,
    results_at_random,
    dead_ends_skipped,
    one_cursor_for_all,
    lane_not_busy,
    retry_loses_its_place,
    silent_success,
]
