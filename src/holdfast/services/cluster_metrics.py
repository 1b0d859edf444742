"""Figures of the whole cluster, read from the store: what one process exports for all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from holdfast.adapters.records import StoreRecords
from holdfast.engine.metering import TenantLabels
from holdfast.engine.tenants import PREFIX, readable_tenants
from holdfast.model.run import Run, RunState
from holdfast.model.tenant import QUOTA_NAMES, Tenant
from holdfast.ports.metrics import Sample
from holdfast.ports.store import LaneInfo, RunFilter, Store
from holdfast.services.pipeline_locks import LockLease, PipelineLocks
from holdfast.services.tenants import Usage, usage_of
from holdfast.services.workers import WorkerView, list_workers

PAGE = 500
MOST_RUNNING = 5000
"""Running runs that are looked at."""
MOST_LETTERS = 1000
LETTERS_READ = 50
MOST_TENANTS = 200
"""Tenants whose quotas are exported: each costs two questions."""


class ClusterSettings(Struct, frozen=True):
    """What the settings add to the figures."""

    alert_threshold: float = 0.8
    llm_budget: float | None = None


class Figures(Struct, frozen=True):
    """What was read from the store at one time."""

    now: float
    leases: list[LockLease]
    running: list[Run]
    unique: list[Run]
    lanes: list[LaneInfo]
    workers: list[WorkerView]
    letters: int
    quotas: list[tuple[Tenant, Usage]]


async def read_figures(store: Store) -> Figures:
    records = StoreRecords(store)
    tenants = await records.list(PREFIX, limit=MOST_TENANTS)
    known = readable_tenants(tenants.records)
    return Figures(
        tenants.now,
        [lease async for lease in PipelineLocks(records).held()],
        await _running(store),
        [run for run in await store.unique_runs() if run.state == RunState.RUNNING],
        await store.lanes(),
        await list_workers(records),
        await _open_letters(store),
        [(tenant, await usage_of(store, tenant.name)) for tenant in known],
    )


async def _open_letters(store: Store) -> int:
    """A letter is read with its bytes, so a few at a time."""
    count, behind = 0, None
    while count < MOST_LETTERS:
        page = await store.dead_letters(limit=LETTERS_READ, behind=behind)
        count += len(page)
        if len(page) < LETTERS_READ:
            break
        behind = (page[-1].created, page[-1].id)
    return count


async def _running(store: Store) -> list[Run]:
    runs: list[Run] = []
    where = RunFilter(state=RunState.RUNNING)
    page = await store.runs(where, limit=PAGE)
    while page and len(runs) < MOST_RUNNING:
        runs += page
        await asyncio.sleep(0)
        page = await store.runs(where, limit=PAGE, before=page[-1].seq)
    return runs


def samples(figures: Figures, tenants: TenantLabels, settings: ClusterSettings) -> Iterator[Sample]:
    yield from _locks(figures, tenants)
    yield from _lanes(figures)
    yield from _workers(figures)
    yield from _quotas(figures, tenants)
    yield Sample("pipeline_dlq_messages", figures.letters)
    yield Sample("pipeline_lock_expiration_alert_threshold", settings.alert_threshold)
    if settings.llm_budget is not None:
        yield Sample("pipeline_llm_budget_usd", settings.llm_budget)


def _locks(figures: Figures, tenants: TenantLabels) -> Iterator[Sample]:
    """Locks of pipelines, and the running runs of unique ones, which can't outlive what they
    protect. Of those that share a label the oldest is shown."""
    held: Counter[tuple[str, str]] = Counter()
    oldest: dict[tuple[str, str], LockLease] = {}
    for lease in figures.leases:
        pair = (tenants.of(lease.lock.tenant), lease.lock.pipeline)
        held[pair] += 1
        if pair not in oldest or lease.lock.locked_at < oldest[pair].lock.locked_at:
            oldest[pair] = lease
    held.update((tenants.of(run.tenant), run.pipeline) for run in figures.unique)
    running = Counter((tenants.of(run.tenant), run.pipeline) for run in figures.running)
    for pair, count in held.items():
        yield Sample("pipeline_active_locks", count, _labels(pair))
    for pair in sorted({*held, *running}):
        yield Sample("pipeline_running_count", running[pair], _labels(pair))
    for pair, lease in oldest.items():
        lock, labels = lease.lock, _labels(pair)
        yield Sample("pipeline_lock_age_seconds", max(0.0, figures.now - lock.locked_at), labels)
        yield Sample("pipeline_lock_timeout_seconds", lock.timeout, labels)
        yield Sample("pipeline_lock_acquired_timestamp_seconds", lock.locked_at, labels)


def _labels(pair: tuple[str, str]) -> dict[str, str]:
    return {"tenant_id": pair[0], "pipeline_id": pair[1]}


def _lanes(figures: Figures) -> Iterator[Sample]:
    for lane in figures.lanes:
        queue = {"queue": lane.name}
        age = 0.0 if lane.oldest is None else max(0.0, figures.now - lane.oldest)
        yield Sample("pipeline_queue_depth", lane.queued, queue)
        yield Sample("pipeline_queue_delayed", lane.delayed, queue)
        yield Sample("pipeline_queue_running", lane.running, queue)
        yield Sample("pipeline_queue_oldest_message_age_seconds", age, queue)
        if lane.order != "fifo":
            continue
        has_work = lane.queued + lane.running > 0
        yield Sample("pipeline_lane_has_leader", lane.leader is not None or not has_work, queue)
        if lane.leader is not None:
            yield Sample("pipeline_leader", 1.0, {**queue, "worker": lane.leader})


def _workers(figures: Figures) -> Iterator[Sample]:
    states = Counter(worker.state for worker in figures.workers)
    for state in ("alive", "lost"):
        yield Sample("pipeline_workers", states[state], {"state": state})
    alive = {worker.name for worker in figures.workers if worker.state == "alive"}
    stale = sum(run.worker not in alive for run in figures.running)
    yield Sample("pipeline_stale_runs", stale)


def _quotas(figures: Figures, tenants: TenantLabels) -> Iterator[Sample]:
    """Of tenants that share a label, the highest ratio."""
    ratios: dict[tuple[str, str], float] = {}
    for tenant, usage in figures.quotas:
        for quota in QUOTA_NAMES:
            limit = getattr(tenant.quotas, quota)
            if not limit:
                continue
            key = (tenants.of(tenant.name), quota)
            ratios[key] = max(ratios.get(key, 0.0), getattr(usage, quota) / limit)
    for (name, quota), ratio in ratios.items():
        labels = {"tenant_id": name, "quota": quota}
        yield Sample("pipeline_tenant_quota_used_ratio", ratio, labels)
