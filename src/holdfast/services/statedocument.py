"""The state document of seed 000: the same names and words that its tools already read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.analytics import StepAnalytics, milliseconds
from holdfast.model.run import ErrorInfo, RunState, StepStatus
from holdfast.ports.store import Store
from holdfast.services.steps import StepView, UsageView
from holdfast.services.views import RunView

VERSION = "1.0"

STATUS = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "running",
    RunState.PAUSED: "running",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "failed",
}
"""The seed knows no cancelled state: its readers see a failure whose error says so."""


class StateError(Struct, omit_defaults=True):
    message: str
    name: str
    step: str | None = None


class StateDocument(Struct, rename="camel"):
    version: str
    report_id: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    status: str
    step_analytics: dict[str, StepAnalytics]
    completed_results: dict[str, Any]
    validation_failures: dict[str, int]
    total_tokens: int
    total_cost: float
    total_duration_ms: int
    current_step: str | msgspec.UnsetType = msgspec.UNSET
    error: StateError | msgspec.UnsetType = msgspec.UNSET


async def state_document(
    store: Store, view: RunView, fetch: Callable[[str], Awaitable[str | None]]
) -> StateDocument:
    """The document for a run. `fetch` gives the text behind a stored value."""
    usage = UsageView.of(step.usage for step in view.steps)
    return StateDocument(
        VERSION,
        view.run.key or view.run.id,
        view.run.tenant,
        view.run.created,
        view.history[-1].at if view.history else view.run.created,
        STATUS[view.state],
        {step.name: _analytics(step) for step in view.steps},
        await _results(store, view, fetch),
        view.validation_failures,
        usage.total_tokens,
        usage.cost,
        round(1000 * (view.run.duration or 0.0)),
        current_step=_current(view),
        error=_error(view),
    )


def _analytics(step: StepView) -> StepAnalytics:
    if step.status == StepStatus.PENDING:
        return StepAnalytics(step.name, step.status)
    return StepAnalytics(
        step.name,
        step.status,
        step.started,
        step.finished,
        milliseconds(step.duration),
        step.usage.input_tokens,
        step.usage.output_tokens,
        step.usage.total_tokens,
        step.usage.cost,
        step.error.message if step.error else None,
        step.error.name if step.error else None,
    )


async def _results(
    store: Store, view: RunView, fetch: Callable[[str], Awaitable[str | None]]
) -> dict[str, Any]:
    completed = {step.name for step in view.steps if step.status == StepStatus.COMPLETED}
    results: dict[str, Any] = {}
    for checkpoint in await store.checkpoints(view.run.id):
        if checkpoint.key == "" and checkpoint.step in completed:
            text = await fetch(checkpoint.value)
            results[checkpoint.step] = msgspec.json.decode(text) if text is not None else None
    return results


def _current(view: RunView) -> str | msgspec.UnsetType:
    under_way = [
        step.name
        for step in view.steps
        if step.status in (StepStatus.IN_PROGRESS, StepStatus.FAILED)
    ]
    return under_way[0] if under_way else msgspec.UNSET


def _error(view: RunView) -> StateError | msgspec.UnsetType:
    found = view.run.error
    if view.state == RunState.CANCELLED:
        found = ErrorInfo("Cancelled", view.run.reason or "the run was cancelled")
    return StateError(found.message, found.name, found.step) if found else msgspec.UNSET
