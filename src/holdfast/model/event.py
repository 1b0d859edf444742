"""Facts about a run, written with the state change that caused them and numbered without gaps."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct

EVENTS_TOPIC = "holdfast-events"
"""Where all events are published, unless the setting `events.topic` says otherwise."""


class EventType(StrEnum):
    QUEUED = "run.queued"
    STARTED = "run.started"
    RETRYING = "run.retrying"
    HANDED_OVER = "run.handed_over"
    WORKER_LOST = "run.worker_lost"
    PAUSED = "run.paused"
    RESUMED = "run.resumed"
    COMPLETED = "run.completed"
    FAILED = "run.failed"
    CANCELLED = "run.cancelled"
    STEP_COMPLETED = "step.completed"
    STEP_SKIPPED = "step.skipped"
    CHECKPOINT_QUARANTINED = "checkpoint.quarantined"
    MESSAGE_DEAD_LETTERED = "message.dead_lettered"


STATE_AFTER: dict[str, str] = {
    EventType.QUEUED: "queued",
    EventType.STARTED: "running",
    EventType.RETRYING: "queued",
    EventType.HANDED_OVER: "queued",
    EventType.WORKER_LOST: "queued",
    EventType.PAUSED: "paused",
    EventType.RESUMED: "queued",
    EventType.COMPLETED: "succeeded",
    EventType.FAILED: "failed",
    EventType.CANCELLED: "cancelled",
}
"""The run state that an event leads to; events missing here leave the state as it is."""

STATE_BEFORE: dict[str, str] = {
    EventType.STARTED: "queued",
    EventType.RETRYING: "running",
    EventType.HANDED_OVER: "running",
    EventType.WORKER_LOST: "running",
    EventType.PAUSED: "running",
    EventType.COMPLETED: "running",
    EventType.FAILED: "running",
}
"""The run state that an event comes from, unless its data say otherwise with `from`."""


class Event(Struct, frozen=True):
    """One fact. Its id is derived from run and number, so that every copy of it is recognised.

    A message that can't become a run has one event: then `run` is the id of its dead letter."""

    run: str
    seq: int
    type: str
    at: float
    data: str = "{}"
    tenant: str = ""
    pipeline: str = ""
    position: int = 0

    @property
    def id(self) -> str:
        return f"{self.run}:{self.seq}"

    @property
    def transition(self) -> tuple[str | None, str | None]:
        """The states that it leads from and to. A new run comes from none; an event that leaves the
        state as it is has neither."""
        if self.type not in STATE_AFTER:
            return None, None
        before = STATE_BEFORE.get(self.type)
        if '"from"' in self.data:
            before = msgspec.json.decode(self.data).get("from", before)
        return before, STATE_AFTER[self.type]


def history_gaps(events: list[Event]) -> list[int]:
    """The numbers missing from a run's history; empty when it is gap-free."""
    present = {event.seq for event in events}
    return [seq for seq in range(1, max(present, default=0) + 1) if seq not in present]
