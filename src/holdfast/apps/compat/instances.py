"""A run as the users of a compute queue know it: an instance with a status and, if it failed, the
reason, the type of the error and the phase."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from holdfast.model.run import Run, RunState

STATUS = {
    RunState.QUEUED: "Queued",
    RunState.RUNNING: "Processing",
    RunState.PAUSED: "Processing",
    RunState.SUCCEEDED: "Completed",
    RunState.FAILED: "Failed",
    RunState.CANCELLED: "Failed",
}
ERROR_TYPES = {
    "InvalidInput": "VALIDATION",
    "ValidationError": "VALIDATION",
    "StepTimeout": "TIMEOUT",
    "RunTimeout": "TIMEOUT",
    "PermissionError": "AUTHORIZATION",
}


def error_type(name: str) -> str:
    """`MIGRATION_ISSUES` for an error class `MigrationIssues`."""
    return ERROR_TYPES.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def instance_of(run: Run) -> dict[str, Any]:
    """Fields that have no value are left out."""
    fields = {
        "id": run.key or run.id,
        "status": STATUS[run.state],
        "queuedAt": _moment(run.created),
        "processingStartedAt": _moment(run.started),
        "finishedAt": _moment(run.finished),
        "requestTraceId": run.labels.get("traceId"),
    }
    if run.state is RunState.CANCELLED:
        fields |= {"failureReason": run.reason or "cancelled", "errorType": "CANCELLED"}
    elif run.error is not None:
        fields |= {
            "failureReason": run.error.message,
            "errorType": error_type(run.error.name),
            "errorPhase": run.error.step or "UNKNOWN",
        }
    return {name: value for name, value in fields.items() if value is not None}


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
