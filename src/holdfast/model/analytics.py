"""What the state document of seed 000 says of one step, by the names that its tools already read."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from holdfast.model.run import StepRecord, StepStatus


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


def analytics(step: str, record: StepRecord) -> StepAnalytics:
    """Of a step that is no longer pending."""
    usage, error = record.usage, record.error
    return StepAnalytics(
        step,
        record.status,
        moment(record.started),
        moment(record.finished),
        milliseconds(record.took),
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.cost,
        error.message if error else None,
        error.name if error else None,
    )


def milliseconds(duration: float | None) -> int | None:
    """At least one: a step that was executed took some time."""
    return None if duration is None else max(1, round(1000 * duration))


def moment(time: float | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time, UTC)
