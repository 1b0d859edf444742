"""Everything that keeps somebody else waiting: locks, leaderships, pipeline locks, unique runs."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from holdfast.adapters.records import StoreRecords
from holdfast.model.lane import LANE_LOCK
from holdfast.model.leadership import Leaders
from holdfast.model.lease import LockInfo
from holdfast.model.run import Run
from holdfast.ports.store import Store
from holdfast.services.pipeline_locks import LockLease, PipelineLocks
from holdfast.services.views import at


class LockView(Struct):
    """`remaining` is how long the lease still lasts, in seconds. What the kinds mean:

    lock      taken by code, or by the engine itself
    leader    of a fifo lane; `held_for` is what its leadership is called in the log
    pipeline  of a tenant and a pipeline; `held_for` is the execution that holds it
    run       the live run of a unique pipeline; `held_for` is its id, it ends with the run
    """

    kind: str
    name: str
    holder: str | None
    held_for: str | None = None
    epoch: int | None = None
    acquired: datetime | None = None
    remaining: float | None = None
    reason: str = ""


async def held_locks(store: Store, leaders: Leaders | None = None) -> list[LockView]:
    """All of them, by kind and name."""
    views = [_lock(lock, leaders or Leaders()) for lock in await store.locks()]
    leases = PipelineLocks(StoreRecords(store)).held()
    views += [_pipeline(lease) async for lease in leases]
    views += [_unique(run) for run in await store.unique_runs()]
    return sorted(views, key=lambda view: (view.kind, view.name))


def _lock(lock: LockInfo, leaders: Leaders) -> LockView:
    lane = lock.name.removeprefix(LANE_LOCK)
    leads = lane != lock.name
    return LockView(
        "leader" if leads else "lock",
        lock.name,
        lock.owner,
        leaders.key_of(lane) if leads else None,
        lock.epoch,
        at(lock.acquired),
        max(0.0, lock.remaining),
    )


def _pipeline(lease: LockLease) -> LockView:
    lock = lease.lock
    return LockView(
        "pipeline",
        lock.name,
        lock.locked_by,
        lock.id,
        acquired=at(lock.locked_at),
        remaining=lease.remaining,
        reason=lock.reason,
    )


def _unique(run: Run) -> LockView:
    name = f"unique:{run.tenant}:{run.pipeline}"
    return LockView("run", name, run.worker or str(run.state), run.id, acquired=at(run.created))
