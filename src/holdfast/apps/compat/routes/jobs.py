"""Jobs over HTTP: content and a preset in, a job id out at once, and the way to follow it.

POST /pipeline/run           accepted, with the id
GET  /pipeline/job/{job_id}  status, history and result
GET  /pipeline/jobs          newest first

The pipeline is the setting `jobs.pipeline`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
from fastapi import APIRouter, Query
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Access, Reader, Submitter
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.apps.compat.routes.words import JOB, milliseconds, settings, state_of, subject
from holdfast.errors import InvalidInput
from holdfast.model.event import STATE_AFTER, STATE_BEFORE
from holdfast.ports.store import RunFilter
from holdfast.services.service import Submission
from holdfast.services.views import EventView, RunSummary

router = APIRouter(tags=["jobs"])

PRIORITIES = {"low": 0, "normal": 5, "high": 10}
Text = Annotated[str, Meta(min_length=1)]


class JobRequest(Struct):
    content: Text
    priority: Literal["low", "normal", "high"] = "low"
    lang: str = "en"
    preset: str | None = None
    duration_sec: float = 30
    user_id: str | None = None
    metadata: dict[str, Any] = {}


class JobAccepted(Struct):
    """`cost_estimate` is null: unknown before the job has run."""

    status: str
    job_id: str
    message: str
    cost_estimate: float | None
    check_status_at: str


class JobResult(Struct):
    status: str
    output: Any
    error_message: str | None
    processing_time_ms: int | None


class JobStateChange(Struct):
    previous_state: str | None
    new_state: str
    reason: str | None
    created_at: datetime


class JobSummary(Struct, omit_defaults=True):
    job_id: str
    user_id: str | None
    preset: str | None
    status: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    state_history: list[JobStateChange] | UnsetType = UNSET
    result: JobResult | UnsetType | None = UNSET


class JobPage(Struct):
    jobs: list[JobSummary]
    limit: int
    offset: int


@router.post(
    "/pipeline/run",
    **documented(JobAccepted, description="The job is durable.", body=JobRequest),
)
async def run_job(
    request: Request, access: Submitter, body: Annotated[JobRequest, body_of(JobRequest)]
) -> Response:
    """Accept a job. It is durable when this answers, before anything is published."""
    job_id = str(uuid4())
    about = Submission(priority=PRIORITIES[body.priority], labels=_labels(access, body))
    job = _job(job_id, access, body)
    accepted = await access.service.runs.submit(_pipeline(), job, key=job_id, about=about)
    location = f"{request.scope.get('root_path', '')}/pipeline/job/{subject(accepted.run)}"
    return answer(
        JobAccepted("queued", subject(accepted.run), "Job accepted for processing", None, location)
    )


def _job(job_id: str, access: Access, body: JobRequest) -> dict[str, Any]:
    """The job as the message of another system would describe it."""
    metadata = {**body.metadata, "lang": body.lang, "duration_sec": body.duration_sec}
    job = {"job_id": job_id, "user_id": _user(access, body), "content": body.content}
    return {**job, "metadata": metadata, **({"preset": body.preset} if body.preset else {})}


def _user(access: Access, body: JobRequest) -> str:
    return body.user_id or access.caller.actor


def _labels(access: Access, body: JobRequest) -> dict[str, str]:
    labels = {"user_id": _user(access, body), "preset": body.preset or ""}
    return {name: value for name, value in labels.items() if value}


@router.get("/pipeline/job/{job_id}", **documented(JobSummary, description="The job."))
async def show_job(job_id: str, access: Reader) -> Response:
    """A job with the history of its states and, once it has ended, its result."""
    runs = access.service.runs
    run = await runs.find(job_id)
    events = await runs.events(run.id)
    summary = msgspec.structs.replace(
        _summary(run), state_history=_history(events), result=await _result(access, run)
    )
    return answer(summary)


@router.get("/pipeline/jobs", **documented(JobPage, description="Newest first."))
async def list_jobs(
    access: Reader,
    status: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> Response:
    """Jobs of the key's tenant."""
    state = state_of(JOB, status) if status else None
    if status and state is None:
        known = ", ".join(dict.fromkeys(JOB.values()))
        raise InvalidInput(f"there is no status {status!r:.40}; known: {known}")
    where = RunFilter(pipeline=_pipeline(), state=state)
    page = await access.service.runs.list(where, limit=offset + limit)
    return answer(JobPage([_summary(run) for run in page.items[offset:]], limit, offset))


def _pipeline() -> str:
    return settings().jobs.pipeline


def _summary(run: RunSummary) -> JobSummary:
    return JobSummary(
        subject(run),
        run.labels.get("user_id"),
        run.labels.get("preset"),
        JOB[run.state],
        run.created,
        run.started,
        run.finished,
    )


def _history(events: list[EventView]) -> list[JobStateChange]:
    changes: list[JobStateChange] = []
    for event in events:
        if event.type not in STATE_AFTER:
            continue
        data = event.data if isinstance(event.data, dict) else {}
        before = data.get("from", STATE_BEFORE.get(event.type))
        after = STATE_AFTER[event.type]
        previous = JOB[before] if before else None
        changes.append(JobStateChange(previous, JOB[after], data.get("reason"), event.at))
    return changes


async def _result(access: Access, run: RunSummary) -> JobResult | None:
    if run.state == "succeeded":
        output = msgspec.json.decode(await access.service.runs.result(run.id))
        return JobResult("success", output, None, milliseconds(run))
    if run.state == "failed":
        message = str(run.error) if run.error else run.reason
        return JobResult("error", None, message, milliseconds(run))
    return None
