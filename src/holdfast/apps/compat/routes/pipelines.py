"""Pipelines triggered over HTTP, one live run for each tenant and pipeline.

POST   /pipelines/run/{pipeline_id}          start it, or get the run that is live
GET    /pipelines/runs                       newest first
GET    /pipelines/runs/{pipeline_logging_id}
DELETE /pipelines/runs/{pipeline_logging_id}
POST   /pipelines/batch/publish              one run for each of many tenants, spread over time
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.routing import APIRoute
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Access, Admin, Operator, Reader, Submitter
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.problems import Problem
from holdfast.apps.compat.routes.words import (
    PIPELINE_RUN,
    milliseconds,
    settings,
    state_of,
    subject,
)
from holdfast.errors import HoldfastError, InvalidInput, StoreUnavailable
from holdfast.model.run import FINISHED
from holdfast.ports.store import RunFilter
from holdfast.services.service import Pipelines, Submission
from holdfast.services.views import RunSummary

TRIGGER = "trigger_by"


class FailClosed(APIRoute):
    """A store that is away means that nobody knows what is running: nothing is started."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except StoreUnavailable as error:
                raise Problem(
                    503,
                    "lock-unavailable",
                    f"Lock manager unavailable: {error}",
                    headers={"Retry-After": "5"},
                ) from error

        return handle


router = APIRouter(tags=["pipelines"], route_class=FailClosed)


class Triggered(Struct):
    pipeline_logging_id: str
    pipeline_id: str
    tenant_id: str
    status: str
    message: str


class PipelineRun(Struct):
    pipeline_logging_id: str
    pipeline_id: str
    tenant_id: str
    status: str
    trigger_type: str
    trigger_by: str | None
    start_time: datetime | None
    end_time: datetime | None
    duration_ms: int | None
    error_message: str | None


class Publish(Struct):
    """`max_jitter_seconds` is the longest random delay before a run may start."""

    tenant_ids: list[str]
    pipeline_id: str
    parameters: dict[str, Any] = {}
    randomize_delay: bool = True
    max_jitter_seconds: float = 3600.0


class Published(Struct):
    """`failed` says why, for each tenant whose run was not accepted."""

    pipeline_id: str
    published: int
    runs: dict[str, str]
    failed: dict[str, str]


Parameters = dict[str, Any]


@router.post(
    "/pipelines/run/{pipeline_id}",
    **documented(Triggered, description="The run, new or live.", body=Parameters),
)
async def trigger_pipeline(
    pipeline_id: str, access: Submitter, body: Annotated[Parameters, body_of(Parameters)]
) -> Response:
    """Start a pipeline for the key's tenant. While one is live, that one is the answer."""
    return answer(await _trigger(access, pipeline_id, body))


async def _trigger(access: Access, pipeline: str, body: Parameters) -> Triggered:
    trigger = str(body.get(TRIGGER) or "api_user")
    labels = {TRIGGER: trigger, "trigger_type": "api", "locked_by": access.caller.actor}
    body_input = await _input(access.service.pipelines, pipeline, body)
    about = Submission(labels=labels, unique=True)
    accepted = await access.service.runs.submit(pipeline, body_input, about=about)
    if accepted.created:
        status, message = "PENDING", "triggered successfully (async mode)"
    else:
        status, message = "RUNNING", "already running - returning existing execution"
    run = accepted.run
    return Triggered(subject(run), pipeline, run.tenant, status, f"Pipeline {pipeline} {message}")


async def _input(pipelines: Pipelines, pipeline: str, body: Parameters) -> Parameters:
    """The body as the pipeline's input. Who triggered it is left out where the pipeline knows no
    such field and wants no others: it is a label."""
    schema = await pipelines.schema(pipeline)
    is_open = schema.get("additionalProperties") is not False
    if is_open or TRIGGER in schema.get("properties", {}):
        return body
    return {name: value for name, value in body.items() if name != TRIGGER}


@router.get("/pipelines/runs", **documented(list[PipelineRun], description="Newest first."))
async def list_pipeline_runs(
    access: Reader,
    pipeline_id: str | None = None,
    status: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Response:
    """Runs of the key's tenant."""
    words = _words()
    state = state_of(words, status) if status else None
    if status and state is None:
        known = ", ".join(dict.fromkeys(words.values()))
        raise InvalidInput(f"there is no status {status!r:.40}; known: {known}")
    where = RunFilter(pipeline=pipeline_id, state=state)
    page = await access.service.runs.list(where, limit=limit)
    return answer([_run(run) for run in page.items])


@router.get(
    "/pipelines/runs/{pipeline_logging_id}", **documented(PipelineRun, description="The run.")
)
async def show_pipeline_run(pipeline_logging_id: str, access: Reader) -> Response:
    """A run by the id that triggering it has answered."""
    return answer(_run(await access.service.runs.find(pipeline_logging_id)))


@router.delete(
    "/pipelines/runs/{pipeline_logging_id}",
    **documented(Triggered, description="What becomes of the run."),
)
async def cancel_pipeline_run(pipeline_logging_id: str, access: Operator) -> Response:
    """Cancel a run: nothing commits any more. A finished one stays as it is."""
    runs = access.service.runs
    run = await runs.find(pipeline_logging_id)
    if run.state in FINISHED or run.state == "failed":
        status, message = _word(run), "has finished already"
    else:
        await runs.cancel(run.id, reason="cancelled over HTTP")
        status, message = "CANCELLING", "is being cancelled"
    text = f"Pipeline run {subject(run)} {message}"
    return answer(Triggered(subject(run), run.pipeline, run.tenant, status, text))


@router.post(
    "/pipelines/batch/publish",
    **documented(Published, description="What was accepted.", body=Publish),
)
async def publish_pipelines(access: Admin, body: Annotated[Publish, body_of(Publish)]) -> Response:
    """One run for each tenant. Those with a live run keep that one."""
    runs: dict[str, str] = {}
    failed: dict[str, str] = {}
    for tenant in dict.fromkeys(body.tenant_ids):
        delay = random.uniform(0, body.max_jitter_seconds) if body.randomize_delay else 0.0
        labels = {TRIGGER: access.caller.actor, "trigger_type": "scheduler"}
        service = access.holdfast.service(tenant=tenant, actor=access.caller.actor)
        about = Submission(labels=labels, unique=True, delay=delay)
        try:
            accepted = await service.runs.submit(body.pipeline_id, body.parameters, about=about)
        except StoreUnavailable:
            raise
        except HoldfastError as error:
            failed[tenant] = str(error)
        else:
            runs[tenant] = subject(accepted.run)
    return answer(Published(body.pipeline_id, len(runs), runs, failed))


def _words() -> Mapping[str, str]:
    return {**PIPELINE_RUN, "succeeded": settings().compat.completed_word}


def _word(run: RunSummary) -> str:
    return _words()[run.state]


def _run(run: RunSummary) -> PipelineRun:
    return PipelineRun(
        subject(run),
        run.pipeline,
        run.tenant,
        _word(run),
        run.labels.get("trigger_type", "api"),
        run.labels.get(TRIGGER),
        run.started,
        run.finished,
        milliseconds(run),
        run.error.message if run.error else None,
    )
