"""What happens when a run fails for good, whether its worker says so or its attempts are used
up."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.adapters.memory.state import State, StoredRun, dead_letter_id
from holdfast.model.event import EventType
from holdfast.model.run import ErrorInfo
from holdfast.ports.store import DeadLetter


def fail(state: State, row: StoredRun, error: ErrorInfo | None) -> None:
    row.run.error = error
    state.change(row, EventType.FAILED, {"error": error})
    lane = state.lane(row.run.lane)
    if lane.order == "fifo" and lane.head == "skip":
        return
    row.holds_lane = lane.order == "fifo" and lane.head == "block"
    _bury(state, row, error or ErrorInfo("Unknown", ""))


def _bury(state: State, row: StoredRun, error: ErrorInfo) -> None:
    """Open the run's dead letter, or the same one again when it fails after a resume."""
    run = row.run
    reason = f"{error.name}: {error.message}"
    id = dead_letter_id(run.id)
    attributes = {"pipeline": run.pipeline, "attempts": str(run.attempts)}
    if before := state.dead_letters.get(id):
        again = replace(before, reason=reason, attributes=attributes, closed=None, resolution=None)
        state.dead_letters[id] = again
        return
    body = run.input.encode()
    now = state.clock.now()
    state.dead_letters[id] = DeadLetter(
        id, "run", reason, body, attributes, run.tenant, now, run=run.id
    )
