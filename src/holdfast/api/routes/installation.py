"""The whole installation, for administrators: lanes, locks, workers, projections, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.api.access import Admin
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.routes.runs import Limit
from holdfast.api.shapes import Reason
from holdfast.ports.store import LaneInfo
from holdfast.services.audit import AuditView
from holdfast.services.held_locks import LockView
from holdfast.services.lanes import LaneView
from holdfast.services.projections import ProjectionView
from holdfast.services.service import Page, Released, SteppedDown
from holdfast.services.workers import WorkerView

router = APIRouter(tags=["installation"])

Why = Annotated[Reason, body_of(Reason)]


@router.get("/v1/lanes", **documented(Page[LaneInfo], description="All lanes."))
async def list_lanes(access: Admin) -> Response:
    """Lanes, and what waits and runs in them."""
    return answer(Page(await access.service.lanes.list()))


@router.get("/v1/lanes/{lane}", **documented(LaneView, description="The lane."))
async def show_lane(lane: str, access: Admin) -> Response:
    """A lane; a fifo lane with its leaders, and why they ended."""
    return answer(await access.service.lanes.show(lane))


@router.post(
    "/v1/lanes/{lane}/step-down",
    **documented(SteppedDown, description="Who leads it no more.", body=Reason),
)
async def step_down(lane: str, access: Admin, body: Why) -> Response:
    """Let another worker lead a fifo lane."""
    return answer(await access.service.lanes.step_down(lane, reason=body.reason))


@router.get("/v1/locks", **documented(Page[LockView], description="All that are held."))
async def list_locks(access: Admin) -> Response:
    """Locks, leaderships, pipeline locks, and the live runs of unique pipelines."""
    return answer(Page(await access.service.locks.list()))


@router.post(
    "/v1/locks/{lock:path}/release",
    **documented(Released, description="Who held it.", body=Reason),
)
async def release_lock(lock: str, access: Admin, body: Why) -> Response:
    """Take a lock away from its holder, whose epoch ends: it can write nothing more. Audited."""
    return answer(await access.service.locks.release(lock, reason=body.reason))


@router.get("/v1/workers", **documented(Page[WorkerView], description="All of them."))
async def list_workers(access: Admin) -> Response:
    """The workers of the store; those that vanished are shown for an hour."""
    return answer(Page(await access.service.workers()))


@router.get("/v1/projections", **documented(Page[ProjectionView], description="All of them."))
async def list_projections(access: Admin) -> Response:
    """What leaves for other systems, and how far it is."""
    return answer(Page(await access.service.projections.list()))


@router.get(
    "/v1/projections/{projection}", **documented(ProjectionView, description="The projection.")
)
async def show_projection(projection: str, access: Admin) -> Response:
    """One projection."""
    return answer(await access.service.projections.find(projection))


@router.post(
    "/v1/projections/{projection}/rebuild",
    **documented(ProjectionView, description="The projection, at its beginning."),
)
async def rebuild_projection(projection: str, access: Admin) -> Response:
    """Begin again with the first event that is kept."""
    projections = access.service.projections
    await projections.rebuild(projection)
    return answer(await projections.find(projection))


@router.delete(
    "/v1/projections/{projection}", **documented(status=204, description="It is forgotten.")
)
async def drop_projection(projection: str, access: Admin) -> Response:
    """Forget a projection that no process runs any more."""
    await access.service.projections.drop(projection)
    return Response(status_code=204)


@router.get("/v1/audit", **documented(Page[AuditView], description="The newest first."))
async def list_audit(access: Admin, limit: Limit = 100) -> Response:
    """Who did what to what, and why."""
    return answer(Page(await access.service.audit(limit=limit)))
