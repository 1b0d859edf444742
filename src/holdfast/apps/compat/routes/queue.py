"""A queue with one leader, as its operators know it.

GET  /api/v1/queue-status        what waits, runs and has ended; who is stuck
POST /api/v1/enqueue/{pipeline}  202 with the place in the queue
POST /api/v1/clear-queue         {"mode": "waiting"}: what waits is cancelled

The queue is the lane that the parameter `queue` names or, without one, the only fifo lane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from msgspec import Struct
from starlette.responses import Response

from holdfast.api.access import Access, Admin, Submitter
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.apps.compat.routes.words import INSTANCE, settings, subject
from holdfast.errors import Conflict, NotFound
from holdfast.model.run import RunState
from holdfast.ports.store import LaneInfo, RunFilter
from holdfast.services.head_of_lane import oldest_queued
from holdfast.services.service import Submission
from holdfast.services.views import RunSummary, summary

router = APIRouter(tags=["queue"])

WAITING_SHOWN = 10
RECENT_SHOWN = 5
PAGE = 200
CLEARED = "QUEUE_CLEARED"
"""The reason that runs keep which were cleared away."""

Queue = Annotated[str | None, Query(description="A lane; by default the only fifo lane.")]


class QueueCounts(Struct):
    name: str
    waiting: int
    active: int
    delayed: int
    failed: int
    completed: int


class ActiveJob(Struct, rename="camel"):
    job_id: str
    instance_id: str
    microservice_id: str | None
    started_at: datetime | None


class WaitingJob(Struct, rename="camel"):
    job_id: str
    instance_id: str
    microservice_id: str | None
    queued_at: datetime


class CompletedJob(Struct, rename="camel"):
    job_id: str
    instance_id: str
    completed_at: datetime | None
    duration_minutes: float | None


class FailedJob(Struct, rename="camel"):
    job_id: str
    instance_id: str
    failed_at: datetime | None
    failure_reason: str | None
    error_type: str | None
    error_phase: str | None


class StaleInstances(Struct, rename="camel"):
    """Those that have been under way for longer than the setting `compat.stale_after`."""

    count: int
    threshold_minutes: float


class QueueStatus(Struct, rename="camel"):
    queue: QueueCounts
    active_jobs: list[ActiveJob]
    waiting_jobs: list[WaitingJob]
    stale_instances: StaleInstances
    recent_completed: list[CompletedJob]
    recent_failed: list[FailedJob]
    timestamp: datetime


class Enqueued(Struct, rename="camel"):
    """`position` is how many are before it in the queue, and under way."""

    id: str
    status: str
    queued: bool
    position: int
    queued_at: datetime


class ClearRequest(Struct):
    mode: Literal["waiting", "failed", "completed", "delayed", "all"]


class Cleared(Struct):
    """`note` says what is left to do by itself."""

    mode: str
    before: QueueCounts
    after: QueueCounts
    note: str


@router.get("/api/v1/queue-status", **documented(QueueStatus, description="The queue."))
async def queue_status(access: Admin, queue: Queue = None) -> Response:
    """What is in a queue now."""
    lane = await _lane(access, queue)
    now = datetime.now(UTC)
    active = await _runs(access, lane.name, "running", limit=PAGE)
    waiting = await _oldest(access, lane.name)
    completed = await _runs(access, lane.name, "succeeded", limit=RECENT_SHOWN)
    failed = await _runs(access, lane.name, "failed", limit=RECENT_SHOWN)
    return answer(
        QueueStatus(
            await _counts(access, lane),
            [ActiveJob(run.id, subject(run), _microservice(run), run.started) for run in active],
            [WaitingJob(run.id, subject(run), _microservice(run), run.created) for run in waiting],
            _stale(active, now),
            [_completed(run) for run in completed],
            [_failed(run) for run in failed],
            now,
        )
    )


Job = dict[str, Any]


@router.post(
    "/api/v1/enqueue/{pipeline}",
    **documented(Enqueued, status=202, description="It is durable.", body=Job),
)
async def enqueue(pipeline: str, access: Submitter, body: Annotated[Job, body_of(Job)]) -> Response:
    """Put a job into the queue of its pipeline. One that was put there before is the answer."""
    accepted = await access.service.runs.submit(pipeline, body, about=Submission())
    run = accepted.run
    state = "queued" if accepted.created else run.state  # it may have been claimed already
    is_open = state in ("queued", "running")
    position = await _position(access, run, accepted.created) if run.state == "queued" else 0
    return answer(
        Enqueued(subject(run), INSTANCE[state], is_open, position, run.created), status=202
    )


@router.post(
    "/api/v1/clear-queue", **documented(Cleared, description="Before and after.", body=ClearRequest)
)
async def clear_queue(
    access: Admin, body: Annotated[ClearRequest, body_of(ClearRequest)], queue: Queue = None
) -> Response:
    """Cancel what waits, or close the dead letters of what has failed. What is under way goes on;
    finished runs go when retention lets them."""
    lane = await _lane(access, queue)
    before = await _counts(access, lane)
    if body.mode in ("waiting", "delayed", "all"):
        await _cancel_waiting(access, lane.name, only_delayed=body.mode == "delayed")
    if body.mode in ("failed", "all"):
        await _close_letters(access, lane.name)
    after = await _counts(access, await _lane(access, lane.name))
    note = "finished runs are kept, and counted, until retention deletes them"
    return answer(Cleared(body.mode, before, after, note))


# --- the lane and its runs ------------------------------------------------------------------------


async def _lane(access: Access, name: str | None) -> LaneInfo:
    lanes = {lane.name: lane for lane in await access.service.lanes.list()}
    if name is not None:
        if name not in lanes:
            raise NotFound(f"there is no queue {name!r:.80}; known: {', '.join(lanes) or 'none'}")
        return lanes[name]
    ordered = [lane for lane in lanes.values() if lane.order == "fifo"]
    if len(ordered) != 1:
        known = ", ".join(lane.name for lane in ordered) or "none"
        raise NotFound(f"name the queue with ?queue=NAME; fifo lanes: {known}")
    return ordered[0]


async def _counts(access: Access, lane: LaneInfo) -> QueueCounts:
    counts = await access.holdfast.store.count(RunFilter(lane=lane.name))
    return QueueCounts(
        lane.name,
        lane.queued - lane.delayed,
        lane.running,
        lane.delayed,
        counts.get("failed", 0),
        counts.get("succeeded", 0),
    )


async def _runs(access: Access, lane: str, state: str, *, limit: int) -> list[RunSummary]:
    """Of all tenants: a queue is one for everybody."""
    service = access.holdfast.service(tenant=None, actor=access.caller.actor)
    where = RunFilter(lane=lane, state=state)
    return (await service.runs.list(where, limit=limit)).items


async def _oldest(access: Access, lane: str) -> list[RunSummary]:
    """Those that come next, the first one first."""
    now = access.holdfast.runtime.clock.now()
    waiting = await oldest_queued(access.holdfast.store, lane, WAITING_SHOWN)
    return [summary(run, now) for run in waiting]


async def _waiting(access: Access, lane: str) -> AsyncIterator[RunSummary]:
    service = access.holdfast.service(tenant=None, actor=access.caller.actor)
    where, cursor = RunFilter(lane=lane, state="queued"), None
    while True:
        page = await service.runs.list(where, limit=PAGE, cursor=cursor)
        for run in page.items:
            yield run
        if (cursor := page.next_cursor) is None:
            return


async def _position(access: Access, run: RunSummary, is_new: bool) -> int:
    """How many are before it. A new one is the last of its lane; behind another one are those that
    a list shows before it."""
    lane = await _lane(access, run.lane)
    if is_new:
        return max(0, lane.queued + lane.running - 1)
    behind = 0
    async for other in _waiting(access, run.lane):
        if other.id == run.id:
            return max(0, lane.queued + lane.running - behind - 1)
        behind += 1
    return 0  # it was claimed meanwhile


async def _cancel_waiting(access: Access, lane: str, *, only_delayed: bool) -> None:
    service = access.holdfast.service(tenant=None, actor=access.caller.actor)
    store = access.holdfast.store
    for run in [run async for run in _waiting(access, lane)]:
        stored = await store.run(run.id)
        if only_delayed and (stored is None or stored.available is None):
            continue
        try:
            await service.runs.cancel(run.id, reason=CLEARED)
        except Conflict:
            pass  # it has ended meanwhile


async def _close_letters(access: Access, lane: str) -> None:
    letters = access.holdfast.service(tenant=None, actor=access.caller.actor).dead_letters
    store = access.holdfast.store
    cursor = None
    while True:
        page = await letters.list(limit=PAGE, cursor=cursor)
        for letter in page.items:
            run = await store.run(letter.run) if letter.run else None
            if run is not None and run.lane == lane and run.state == RunState.FAILED:
                await letters.discard(letter.id, reason=CLEARED)
        if (cursor := page.next_cursor) is None:
            return


# --- shapes ---------------------------------------------------------------------------------------


def _microservice(run: RunSummary) -> str | None:
    return run.labels.get("microservice_id") or run.labels.get("microserviceId")


def _stale(active: list[RunSummary], now: datetime) -> StaleInstances:
    threshold = settings().compat.stale_after
    started = [run.started for run in active if run.started is not None]
    count = sum((now - start).total_seconds() > threshold for start in started)
    return StaleInstances(count, threshold / 60)


def _completed(run: RunSummary) -> CompletedJob:
    minutes = None if run.duration is None else round(run.duration / 60, 3)
    return CompletedJob(run.id, subject(run), run.finished, minutes)


def _failed(run: RunSummary) -> FailedJob:
    error = run.error
    return FailedJob(
        run.id,
        subject(run),
        run.finished,
        error.message if error else run.reason,
        error.name if error else None,
        error.step if error else None,
    )
