"""What happens when a run fails for good, whether its worker says so or its attempts are used
up."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.commands import RUN_LETTER
from holdfast.model.event import EventType
from holdfast.model.machine.changes import Change, OpenLetter, move
from holdfast.model.machine.facts import Facts, Now, RunFacts
from holdfast.model.run import ErrorInfo

UNKNOWN = ErrorInfo("Unknown", "")


def fail(
    run: RunFacts, error: str | None, data: dict[str, Any], facts: Facts, now: Now, **fields: Any
) -> list[Change]:
    """One terminal event, and one dead letter unless the run's fifo lane just goes on."""
    lane = facts.lane(run.lane)
    policy = lane.head if lane is not None and lane.order == "fifo" else None
    data = {"error": msgspec.Raw(error.encode()) if error else None, **data}
    holds_lane = policy == "block"
    changes = move(run, EventType.FAILED, data, now, error=error, holds_lane=holds_lane, **fields)
    if policy != "skip":
        changes.append(_letter(run, error))
    return changes


def _letter(run: RunFacts, error: str | None) -> OpenLetter:
    """A run has one dead letter at most: the same one is opened again when it fails after a
    resume."""
    info = msgspec.json.decode(error, type=ErrorInfo) if error else UNKNOWN
    return OpenLetter(
        f"{RUN_LETTER}{run.id}",
        "run",
        f"{info.name}: {info.message}",
        {"pipeline": run.pipeline, "attempts": str(run.attempts)},
        run.tenant,
        run=run.id,
    )
