"""Each guard is taken away once, and the simulation has to notice: otherwise its silence would
prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.memory.tables import Tables
from holdfast.engine import cursors
from holdfast.engine.gate import Gate
from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.relay import EVENTS_TOPIC, NAME, Relay
from holdfast.model.commands import Sweep
from holdfast.model.event import EventType
from holdfast.model.machine import RULES, attempts
from holdfast.model.machine.changes import AddEvent, Decision
from holdfast.model.machine.facts import Now, RunFacts
from holdfast.model.run import RunState
from holdfast.testing.crash import quiet

from .story import Story

PATIENCE = 200
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


def deaf_to_refusal(patch: Patch) -> None:
    """A worker goes on although the store refused its write."""

    async def persist(self: Gate, command: Any) -> Any:
        return await self._committer.send(command)

    patch.setattr(Gate, "persist", persist)
    patch.setattr(Lease, "trusted", property(lambda self: True))
    patch.setattr(Lease, "check", lambda self: None)
    patch.setattr(Lease, "lose", lambda self: None)


def forgotten_checkpoints(patch: Patch) -> None:
    """A new attempt begins from nothing."""

    patch.setattr(Journal, "load_checkpoints", lambda self, checkpoints: None)


def keys_ignored(patch: Patch) -> None:
    """A repeated request becomes a second run."""
    patch.setattr(Tables, "run_with_key", lambda self, tenant, key: None)


def never_swept(patch: Patch) -> None:
    """Runs of dead workers stay where they are."""
    patch.setitem(RULES, Sweep, lambda command, facts, now: Decision([]))


def cursor_moved_too_early(patch: Patch) -> None:
    """The relay moves its cursor before the bus has the events."""

    async def drain(self: Relay) -> int:
        cursor = await cursors.load(self._runtime.records, NAME)
        events = await self._runtime.store.outbox(cursor.position)
        if events:
            await cursors.move(self._runtime.records, cursor, events[-1].position)
        for event in events:
            await self._bus.publish(EVENTS_TOPIC, self._message(event))
        return len(events)

    patch.setattr(Relay, "drain", drain)


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


@pytest.mark.parametrize(
    "bug",
    [
        no_fence,
        no_trust_window,
        deaf_to_refusal,
        forgotten_checkpoints,
        keys_ignored,
        never_swept,
        cursor_moved_too_early,
        lane_not_busy,
        retry_loses_its_place,
        silent_success,
    ],
    ids=lambda bug: bug.__name__,
)
def test_a_missing_guard_is_noticed(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    with quiet():
        for seed in range(PATIENCE):
            try:
                Story(seed, MemoryStore).tell()
            except AssertionError:
                return
    pytest.fail(f"{PATIENCE} worlds and nobody noticed: {bug.__doc__}")
