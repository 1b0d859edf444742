"""Each guard is taken away once, and the simulation has to notice: otherwise its silence would
prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.adapters.memory import execution as stored
from holdfast.adapters.memory import intake
from holdfast.adapters.memory.state import State, accepted
from holdfast.adapters.memory.store import HANDLERS, MemoryStore
from holdfast.engine.gate import Gate
from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.relay import EVENTS_TOPIC, Relay
from holdfast.model.commands import ConfirmOutbox, ReadOutbox, Sweep
from holdfast.model.event import EventType
from holdfast.model.run import RunState
from holdfast.testing.crash import quiet

from .story import Story

PATIENCE = 200
Patch = pytest.MonkeyPatch


def no_fence(patch: Patch) -> None:
    """Whoever once had the run may write to it."""

    def held(self: State, run: str, epoch: int) -> Any:
        row = self.runs.get(run)
        return row if row is not None and row.run.state is RunState.RUNNING else None

    patch.setattr(State, "held", held)


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
    patch.setattr(intake, "_same_key", lambda state, command: None)


def never_swept(patch: Patch) -> None:
    """Runs of dead workers stay where they are."""
    patch.setitem(HANDLERS, Sweep, lambda state, command: [])


def confirmed_too_early(patch: Patch) -> None:
    """The relay confirms before the bus has the events."""

    async def drain(self: Relay) -> int:
        events = await self._runtime.committer.send(ReadOutbox())
        if events:
            await self._runtime.committer.send(ConfirmOutbox(events[-1].position))
        for event in events:
            await self._bus.publish(EVENTS_TOPIC, self._message(event))
        return len(events)

    patch.setattr(Relay, "drain", drain)


def lane_not_busy(patch: Patch) -> None:
    """A fifo lane lets the next run start while one is under way."""

    def head(state: State, command: Any, lane: Any) -> list[Any]:
        first = min(state.in_lane(lane.name, RunState.QUEUED), key=accepted, default=None)
        return [first] if first and stored._claimable(state, first, command) else []

    patch.setattr(stored, "_head", head)


def retry_loses_its_place(patch: Patch) -> None:
    """A run that waits for its retry is overtaken."""

    def head(state: State, command: Any, lane: Any) -> list[Any]:
        if any(state.in_lane(lane.name, RunState.RUNNING)):
            return []
        queued = [
            r
            for r in state.in_lane(lane.name, RunState.QUEUED)
            if stored._claimable(state, r, command)
        ]
        return sorted(queued, key=accepted)[:1]

    patch.setattr(stored, "_head", head)


def silent_success(patch: Patch) -> None:
    """A run succeeds without an event."""
    change = State.record

    def record(self: State, row: Any, event: EventType, data: Any) -> None:
        if event is not EventType.COMPLETED:
            change(self, row, event, data)

    patch.setattr(State, "record", record)


@pytest.mark.parametrize(
    "bug",
    [
        no_fence,
        no_trust_window,
        deaf_to_refusal,
        forgotten_checkpoints,
        keys_ignored,
        never_swept,
        confirmed_too_early,
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
