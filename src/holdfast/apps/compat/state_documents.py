"""The state of every run as the report service's tools read it: `pipeline_state:{id}`,
`pipeline_lock:{id}` while a worker has the run, and `pipeline_validation_failure:{id}:{step}` for
stored results that failed validation. The id is the run's key, or the run's id where it has none.

Written by a process whose settings say `projections = state_documents` and where `documents` are.
`holdfast runs show --format state` prints the first of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.model.event import EventType
from holdfast.model.projection import Document, DocumentProjection, Removal, RunSnapshot
from holdfast.model.run import ErrorInfo, Run, RunState, StepStatus
from holdfast.services.steps import (
    StepView,
    UsageView,
    completed_steps,
    finished_steps,
    step_views,
)
from holdfast.services.views import last_attempt

VERSION = "1.0"
REPORT = "report"
"""The pipeline whose results readers know in shapes of their own."""
LIFE = 86_400.0
LIFE_OF_FAILED = 3_600.0
"""Seconds for which a document stays after it was last written."""
USER_LABELS = ("userId", "user_id")
"""Labels that say for whom a run is; without one of them it is the tenant."""

STATUS = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "running",
    RunState.PAUSED: "running",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "failed",
}
"""There is no word for cancelled: readers see a failure whose error says so."""


class StateUsage(Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class StateResult(Struct):
    """What a step has brought. `data` is its result."""

    data: msgspec.Raw
    usage: StateUsage
    cost: float


class StateOfStep(Struct, rename="camel", omit_defaults=True):
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
    step_analytics: dict[str, StateOfStep]
    completed_results: dict[str, StateResult]
    validation_failures: Mapping[str, int]
    total_tokens: int
    total_cost: float
    total_duration_ms: int
    current_step: str | UnsetType = UNSET
    error: StateError | UnsetType = UNSET


def documents(snapshot: RunSnapshot) -> list[Document | Removal]:
    """The state first."""
    run, id = snapshot.run, snapshot.subject
    life = LIFE_OF_FAILED if STATUS[run.state] == "failed" else LIFE
    lock = f"pipeline_lock:{id}"
    is_running = run.state is RunState.RUNNING
    state = msgspec.json.encode(state_document(snapshot))
    return [
        Document(f"pipeline_state:{id}", state, life),
        Document(lock, run.worker or "", life) if is_running else Removal(lock),
        *(
            Document(f"pipeline_validation_failure:{id}:{step}", str(count), life)
            for step, count in validation_failures(snapshot).items()
        ),
    ]


state_documents = DocumentProjection(name="state_documents", function=documents, results=True)


def state_document(snapshot: RunSnapshot) -> StateDocument:
    run, steps = snapshot.run, _steps(snapshot)
    usage = UsageView.of(step.usage for step in steps)
    last = snapshot.history[-1].at if snapshot.history else run.created
    ran = 0.0 if run.started is None else (run.finished or snapshot.now) - run.started
    return StateDocument(
        VERSION,
        snapshot.subject,
        _user(run),
        _time(run.created),
        _time(last),
        STATUS[run.state],
        {step.name: _of_step(step) for step in steps},
        _results(snapshot, steps),
        validation_failures(snapshot),
        usage.total_tokens,
        usage.cost,
        round(1000 * max(0.0, ran)),
        current_step=_current(steps),
        error=_error(run),
    )


def validation_failures(snapshot: RunSnapshot) -> Mapping[str, int]:
    """How many stored results of each step turned out bad."""
    quarantined = (
        msgspec.json.decode(event.data)["step"]
        for event in snapshot.history
        if event.type == EventType.CHECKPOINT_QUARANTINED
    )
    return Counter(quarantined)


def _steps(snapshot: RunSnapshot) -> list[StepView]:
    history = snapshot.history
    declared = snapshot.steps or list(finished_steps(history))
    completed = completed_steps(snapshot.checkpoints)
    attempt = last_attempt(history)
    return step_views(snapshot.run, completed, {}, declared, attempt, snapshot.now)


def _of_step(step: StepView) -> StateOfStep:
    if step.status == StepStatus.PENDING:
        return StateOfStep(step.name, step.status)
    return StateOfStep(
        step.name,
        step.status,
        step.started,
        step.finished,
        # At least one: a step that was executed took some time.
        None if step.duration is None else max(1, round(1000 * step.duration)),
        step.usage.input_tokens,
        step.usage.output_tokens,
        step.usage.total_tokens,
        step.usage.cost,
        step.error.message if step.error else None,
        step.error.name if step.error else None,
    )


def _results(snapshot: RunSnapshot, steps: Sequence[StepView]) -> dict[str, StateResult]:
    data = _data_of_report(snapshot) if snapshot.run.pipeline == REPORT else None
    if data is None:
        data = {checkpoint.step: checkpoint.value for checkpoint in snapshot.checkpoints}
    return {
        step.name: StateResult(
            msgspec.Raw(data[step.name].encode()),
            StateUsage(step.usage.input_tokens, step.usage.output_tokens, step.usage.total_tokens),
            step.usage.cost,
        )
        for step in steps
        if step.status == StepStatus.COMPLETED and step.name in data
    }


def _data_of_report(snapshot: RunSnapshot) -> dict[str, str] | None:
    """The five steps in the shapes that readers of these documents know. None for another pipeline
    of that name, or where the app is not installed: then results are shown as they are stored."""
    values = {checkpoint.step: checkpoint.value for checkpoint in snapshot.checkpoints}
    try:
        from holdfast.apps.report.outputs.t3c_steps import t3c_step_results

        shaped = t3c_step_results(values, _language(snapshot.input))
    except (ImportError, LookupError, msgspec.ValidationError):
        return None
    return {step: msgspec.json.encode(data).decode() for step, data in shaped.items()}


def _language(request: Any) -> str:
    language = request.get("language") if isinstance(request, dict) else None
    return language if isinstance(language, str) else ""


def _current(steps: Sequence[StepView]) -> str | UnsetType:
    under_way = (StepStatus.IN_PROGRESS, StepStatus.FAILED)
    return next((step.name for step in steps if step.status in under_way), UNSET)


def _error(run: Run) -> StateError | UnsetType:
    error = run.error
    if run.state == RunState.CANCELLED:
        error = ErrorInfo("Cancelled", run.reason or "the run was cancelled")
    return StateError(error.message, error.name, error.step) if error else UNSET


def _user(run: Run) -> str:
    return next((run.labels[name] for name in USER_LABELS if name in run.labels), run.tenant)


def _time(seconds: float) -> Any:
    return datetime.fromtimestamp(seconds, UTC)
