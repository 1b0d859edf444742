"""Whether a worker has anything left to do: what `worker --once` asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run
from holdfast.ports.store import LaneInfo, RunFilter, Store
from holdfast.services.head_of_lane import oldest_queued

PAGE = 200


async def has_work(
    store: Store, pipelines: Iterable[Pipeline[Any]], worker: str, now: float
) -> bool:
    """Whether a run is under way here, or queued, due and claimable by this worker.

    Queued is looked at first: a run claimed in between is then seen as running.
    """
    lanes = {lane.name: lane for lane in await store.lanes()}
    for pipeline in pipelines:
        if await _claimable(store, pipeline, lanes, worker, now):
            return True
    running = store.runs(RunFilter(state="running"), limit=PAGE)
    return any(run.worker == worker for run in await running)


async def _claimable(
    store: Store, pipeline: Pipeline[Any], lanes: dict[str, LaneInfo], worker: str, now: float
) -> bool:
    lane = lanes.get(pipeline.lane.name)
    if lane is not None and lane.order == "fifo":
        return _may_claim(lane, worker) and await _head_is_ours(store, pipeline, now)
    where = RunFilter(pipeline=pipeline.name, lane=pipeline.lane.name, state="queued")
    async for run in _all_runs(store, where):
        if _due(run, now):
            return True
    return False


def _may_claim(lane: LaneInfo, worker: str) -> bool:
    return lane.running == 0 and lane.blocked_by is None and lane.leader in (None, worker)


async def _head_is_ours(store: Store, pipeline: Pipeline[Any], now: float) -> bool:
    """The head is the oldest queued run; when it waits for a retry, the lane waits with it."""
    head = await oldest_queued(store, pipeline.lane.name)
    return bool(head) and head[0].pipeline == pipeline.name and _due(head[0], now)


def _due(run: Run, now: float) -> bool:
    return run.available is None or run.available <= now


async def _all_runs(store: Store, where: RunFilter) -> AsyncIterator[Run]:
    """Newest first, page by page."""
    before: int | None = None
    while page := await store.runs(where, limit=PAGE, before=before):
        for run in page:
            yield run
        before = page[-1].seq
