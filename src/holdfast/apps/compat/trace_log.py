"""The log format `trace`: lines as a compute queue writes them, each with the trace id of its job.

    2025-12-21T06:19:10.932Z - [TraceID: 99d0…] computeGenerationWorker job active | Data: {…}

The engine says what happened as fields of a record (`docs/reference/logs.md`); here they become the
words that people look for. What has no such words is written as it is."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, NamedTuple

from holdfast.apps.compat.instances import error_type

QUEUE_TRACE = "compute-queue"
"""The trace id of lines that belong to no job."""

LOST = {"leadership.lost": "lease-extension-failed", "leadership.given_up": "stopped"}


class Line(NamedTuple):
    text: str
    data: dict[str, Any] | None = None


class TraceLines(logging.Formatter):
    """A formatter for Python's logging; `log.format = "trace"` chooses it."""

    debug = ("holdfast.steps", "holdfast.intake")

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        lines = _lines(fields) or [Line(record.getMessage())]
        text = "\n".join(_written(record.created, _trace(fields), line) for line in lines)
        return f"{text}\n{record.exc_text}" if record.exc_text else text


def _lines(fields: dict[str, Any]) -> list[Line]:
    event = str(fields.get("event", ""))
    kind, _, name = event.partition(".")
    if kind == "leadership":
        return _about_leader(event, fields)
    return _about_job(name, fields) if kind == "run" else []


def _about_leader(event: str, fields: dict[str, Any]) -> list[Line]:
    lane = fields["lane"]
    leader = {"key": fields["leader_key"], "leaderId": fields["worker"]}
    if event in LOST:
        return [Line("Leader election lost", {**leader, "reason": LOST[event]})]
    return [
        Line("Leader election acquired", {**leader, "ttlMs": round(fields["ttl"] * 1000)}),
        Line(f"{lane} scheduler ready"),
        Line(f"{worker_of(lane)} initialized", {"concurrency": 1}),
    ]


def _about_job(name: str, fields: dict[str, Any]) -> list[Line]:
    lane, job = fields["lane"], _job(fields)
    worker = worker_of(lane)
    match name:
        case "accepted":
            return [Line(f"Job enqueued for {lane}", job)]
        case "started":
            counts = {"activeCount": fields["active"], "concurrency": fields["concurrency"]}
            return [Line(f"{worker} job active", {**job, **counts})]
        case "succeeded":
            return [Line(f"{worker} job completed", job)]
        case "failed":
            return [Line(f"{worker} job failed", {**job, **_failure(fields)})]
        case "step_started" | "step_completed" | "step_skipped":
            word = name.removeprefix("step_").capitalize()
            return [Line(f"{fields['step']} {word}", {**job, "phase": fields["step"]})]
    return []


def worker_of(lane: str) -> str:
    """`computeGenerationWorker` of `computeGenerationQueue`."""
    return f"{lane.removesuffix('Queue')}Worker"


def _failure(fields: dict[str, Any]) -> dict[str, Any]:
    """Reason, type and phase of a failure."""
    return {
        "failureReason": fields.get("reason", ""),
        "errorType": error_type(fields.get("error", "Unknown")),
        "errorPhase": fields.get("step", "UNKNOWN"),
    }


def _job(fields: dict[str, Any]) -> dict[str, Any]:
    key = fields.get("run_key") or fields["run"]
    return {"jobId": key, "instanceId": fields.get("labels", {}).get("instanceId", key)}


def _trace(fields: dict[str, Any]) -> str:
    return fields.get("labels", {}).get("traceId") or fields.get("run") or QUEUE_TRACE


def _written(created: float, trace: str, line: Line) -> str:
    moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")
    data = f" | Data: {json.dumps(line.data, separators=(',', ':'))}" if line.data else ""
    return f"{moment.replace('+00:00', 'Z')} - [TraceID: {trace}] {line.text}{data}"
