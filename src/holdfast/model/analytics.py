"""What the state document of seed 000 says of one step, by the names that its tools already
read."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from holdfast.model.run import StepStatus


class StepAnalytics(Struct, rename="camel", omit_defaults=True):
    step_name: str
    status: StepStatus
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_ms: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost: float | None = None
    error_message: str | None = None
    error_name: str | None = None


def milliseconds(duration: float | None) -> int | None:
    """At least one: a step that was executed took some time."""
    return None if duration is None else max(1, round(1000 * duration))
