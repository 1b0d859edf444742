"""Submitting runs: accepted once they are durable, 202 with the place to look."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Submitter
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.headers import applied_wait, idempotency_key, preferred_wait
from holdfast.api.problems import Problem
from holdfast.api.shapes import Links, RunAnswer, SubmitManyRequest, SubmitRequest
from holdfast.api.waiting import wait_for_end
from holdfast.model.run import FINISHED, RunState
from holdfast.services.local import LocalService
from holdfast.services.service import Accepted, Page

router = APIRouter(tags=["runs"])

OnConflict = Annotated[Literal["return", "reject"], Query()]
LOOK_AFTER = "2"
"""Seconds after which it is worth to look at a new run."""


@router.post(
    "/v1/pipelines/{pipeline}/runs",
    **documented(
        RunAnswer,
        status=202,
        description="The run is durable; `Location` says where to look.",
        body=SubmitRequest,
    ),
)
async def submit_run(
    request: Request,
    pipeline: str,
    access: Submitter,
    body: Annotated[SubmitRequest, body_of(SubmitRequest)],
    on_conflict: OnConflict = "return",
) -> Response:
    """Accept a run. The same `Idempotency-Key` with the same input gives the same run; with another
    one it is refused (422). With `Prefer: wait=N` the answer comes when the run has ended, with its
    result, or after N seconds."""
    key = idempotency_key(request, body.key)
    service = access.service
    accepted = await service.runs.submit(pipeline, body.input, key=key, about=body)
    if not accepted.created and on_conflict == "reject":
        raise _already_there(accepted)
    return await _answered(request, service, accepted, key)


async def _answered(
    request: Request, service: LocalService, accepted: Accepted, key: str | None
) -> Response:
    wait = preferred_wait(request)
    run = accepted.run
    if wait:
        run = await wait_for_end(request, service.runs, run.id, wait)
    ended = bool(wait) and run.state in FINISHED
    has_result = ended and run.state == RunState.SUCCEEDED
    result = await service.runs.result(run.id) if has_result else UNSET
    replayed = not accepted.created and key is not None and run.key == key
    existing = not accepted.created and not replayed
    headers = {"Location": f"{_root(request)}/v1/runs/{run.id}", **applied_wait(wait)}
    if not ended:
        headers["Retry-After"] = LOOK_AFTER
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    if existing:
        headers["Holdfast-Existing"] = "true"
    return answer(
        RunAnswer(run, accepted.created, _links(request, run.id), result),
        status=200 if ended or existing else 202,
        headers=headers,
    )


def _already_there(accepted: Accepted) -> Problem:
    run = accepted.run
    return Problem(
        409,
        "conflict",
        f"run {run.id} already answers this request and is {run.state}",
        title="It contradicts what is stored",
        run_id=run.id,
    )


@router.post(
    "/v1/pipelines/{pipeline}/runs/batch",
    **documented(
        Page[Accepted],
        status=202,
        description="All of them are durable.",
        body=SubmitManyRequest,
    ),
)
async def submit_runs(
    pipeline: str,
    access: Submitter,
    body: Annotated[SubmitManyRequest, body_of(SubmitManyRequest)],
) -> Response:
    """Accept many runs, in their order. If one input is not valid, none is accepted."""
    runs = access.service.runs
    accepted = await runs.submit_many(pipeline, body.inputs, keys=body.keys, about=body)
    return answer(Page(accepted), status=202)


def _root(request: Request) -> str:
    return request.scope.get("root_path", "")


def _links(request: Request, run_id: str) -> Links:
    run = f"{_root(request)}/v1/runs/{quote(run_id, safe='')}"
    return Links(run, f"{run}/events", f"{run}/result", f"{run}/cancel")
