"""Runs: look at them, and change their course."""

from __future__ import annotations

import mimetypes
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Operator, Reader
from holdfast.api.answers import JSON, answer, page_answer, tagged, tagged_bytes
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.headers import applied_wait, preferred_wait
from holdfast.api.shapes import Reason, RerunRequest, ResumeRequest
from holdfast.api.waiting import wait_for_end
from holdfast.errors import InvalidInput
from holdfast.model.run import RunState
from holdfast.ports.store import RunFilter
from holdfast.services.artifacts import ArtifactView
from holdfast.services.explanation import Explanation
from holdfast.services.service import Changed, Page
from holdfast.services.views import LogView, RunSummary, RunView

router = APIRouter(tags=["runs"])

Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[int, Query(ge=0, le=2**53)]
Labels = Annotated[list[str], Query(description="NAME=TEXT; may be repeated.")]


@router.get("/v1/runs", **documented(Page[RunSummary], description="A page of runs."))
async def list_runs(
    request: Request,
    access: Reader,
    limit: Limit = 50,
    cursor: str | None = None,
    pipeline: str | None = None,
    state: RunState | None = None,
    lane: str | None = None,
    key: str | None = None,
    id_prefix: str | None = None,
    label: Labels = [],  # noqa: B006  FastAPI copies it
) -> Response:
    """Runs, newest first. Everything given must match."""
    where = RunFilter(
        pipeline=pipeline,
        state=str(state) if state else None,
        lane=lane,
        key=key,
        id_prefix=id_prefix,
        labels=_labels(label),
    )
    return page_answer(request, await access.service.runs.list(where, limit=limit, cursor=cursor))


def _labels(assignments: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(f"label={assignment!r:.80} is not understood: write NAME=TEXT")
        labels[name] = value
    return labels


@router.get("/v1/runs/{run}", **documented(RunView, description="The run."))
async def show_run(request: Request, run: str, access: Reader) -> Response:
    """A run by its id, the start of it, or its key. With `Prefer: wait=N` the answer comes when it
    has ended, or after N seconds."""
    runs = access.service.runs
    wait = preferred_wait(request)
    if wait:
        run = (await wait_for_end(request, runs, run, wait)).id
    return tagged(request, await runs.show(run), applied_wait(wait))


@router.get("/v1/runs/{run}/result", **documented(Any, description="The result."))
async def run_result(request: Request, run: str, access: Reader) -> Response:
    """What the run's last step has returned. 409 while there is none: the problem's code says
    why."""
    result = await access.service.runs.result(run)
    return tagged_bytes(request, bytes(result), JSON)


@router.get("/v1/runs/{run}/explanation", **documented(Explanation, description="Why."))
async def explain_run(run: str, access: Reader) -> Response:
    """Why the run is not running, or why it failed, in one sentence with figures."""
    return answer(await access.service.runs.explain(run))


@router.get("/v1/runs/{run}/state", **documented(Any, description="The state document."))
async def run_state(request: Request, run: str, access: Reader) -> Response:
    """The run as the projection `state_documents` writes it."""
    return tagged_bytes(request, bytes(await access.service.runs.state(run)), JSON)


@router.get("/v1/runs/{run}/artifacts", **documented(Page[ArtifactView], description="All."))
async def list_artifacts(run: str, access: Reader) -> Response:
    """The files that the run's steps have stored."""
    return answer(Page(await access.service.runs.artifacts(run)))


@router.get(
    "/v1/runs/{run}/artifacts/{artifact:path}",
    **documented("application/octet-stream", description="The bytes."),
)
async def read_artifact(request: Request, run: str, artifact: str, access: Reader) -> Response:
    """One of the files."""
    data = await access.service.runs.artifact(run, artifact)
    name = artifact.rpartition("/")[2].partition("-")[2]  # the digest stands before it
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return tagged_bytes(request, data, kind, headers)


@router.get("/v1/runs/{run}/logs", **documented(Page[LogView], description="Lines."))
async def run_logs(
    request: Request, run: str, access: Reader, after: After = 0, limit: Limit = 1000
) -> Response:
    """What the run's steps have logged, behind `after` lines."""
    lines = await access.service.runs.logs(run, after=after, limit=limit)
    return answer(Page(lines, str(after + len(lines)) if len(lines) == limit else None))


# --- changing -------------------------------------------------------------------------------------

CHANGED: dict[str, Any] = {"answers": Changed, "description": "The run, and its state now."}


@router.post("/v1/runs/{run}/cancel", **documented(**CHANGED, body=Reason))
async def cancel_run(
    run: str, access: Operator, body: Annotated[Reason, body_of(Reason)]
) -> Response:
    """End a run for good: once this answers, nothing commits for it any more."""
    return answer(await access.service.runs.cancel(run, reason=body.reason))


@router.post("/v1/runs/{run}/pause", **documented(**CHANGED, body=Reason))
async def pause_run(
    run: str, access: Operator, body: Annotated[Reason, body_of(Reason)]
) -> Response:
    """Park a run, checkpoints kept, until somebody resumes it."""
    return answer(await access.service.runs.pause(run, reason=body.reason))


@router.post("/v1/runs/{run}/resume", **documented(**CHANGED, body=ResumeRequest))
async def resume_run(
    run: str, access: Operator, body: Annotated[ResumeRequest, body_of(ResumeRequest)]
) -> Response:
    """Let a paused or failed run go on from its checkpoints."""
    return answer(await access.service.runs.resume(run, attempts=body.attempts))


@router.post("/v1/runs/{run}/rerun", **documented(**CHANGED, status=202, body=RerunRequest))
async def rerun_run(
    request: Request,
    run: str,
    access: Operator,
    body: Annotated[RerunRequest, body_of(RerunRequest)],
) -> Response:
    """Run the same input again, as a new run linked to the old one, which is answered."""
    changed = await access.service.runs.rerun(run, from_step=body.from_step)
    location = f"{request.scope.get('root_path', '')}/v1/runs/{changed.run}"
    return answer(changed, status=202, headers={"Location": location})
