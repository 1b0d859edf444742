"""Why a queued run waits. The first rule that holds is the cause: they stand in the order in which
a claim meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from holdfast.model.duration import humanise
from holdfast.model.event import Event, EventType
from holdfast.model.run import Run, RunState
from holdfast.ports.store import LaneInfo
from holdfast.services.views import at, readable
from holdfast.services.workers import WorkerView

LOOKED_AT = 1000
"""Runs before a run that are counted."""


class Cause(Struct, frozen=True):
    word: str
    sentence: str
    remedy: str | None = None
    facts: dict[str, Any] = {}


class Situation(Struct, frozen=True):
    """What is known about a queued run and its surroundings."""

    run: Run
    now: float
    history: list[Event]
    lane: LaneInfo | None
    workers: list[WorkerView]
    ahead: list[Run]
    """Queued runs of the lane that come first, at most 1,000: all earlier ones in a fifo lane,
    those of the same tenant that are due in a parallel one."""
    head: Run | None
    """The first one of a fifo lane."""
    running: list[Run]
    """One that runs in the lane, if any does."""
    of_tenant: dict[str, int]
    """The tenant's runs by state."""
    limit: int | None
    """Of the tenant's running runs."""
    active: dict[str, int] = {}
    """Runs by the worker that executes them: what workers say of themselves is seconds old."""
    blocked_by: Run | None = None
    """The failed head of the lane."""
    tenant: str | None = None
    """Who asks, if it is a tenant: then the runs of others have no names."""

    def shown(self, run: Run) -> str:
        id = self.shown_id(run)
        return f"run {id}" if id else "a run of another tenant"

    def shown_id(self, run: Run) -> str | None:
        return run.id if self.tenant in (None, run.tenant) else None

    @property
    def is_fifo(self) -> bool:
        return self.lane is not None and self.lane.order == "fifo"

    @property
    def waited(self) -> str:
        return humanise(max(0.0, self.now - self.run.created))

    @property
    def serving(self) -> list[WorkerView]:
        """Workers that are alive and have the pipeline."""
        alive = (worker for worker in self.workers if worker.state == "alive")
        return [worker for worker in alive if self.run.pipeline in worker.pipelines]


def why_waiting(situation: Situation) -> Cause:
    rules: list[Callable[[Situation], Cause | None]] = [
        _delayed,
        _lane_blocked,
        _no_worker,
        _lane_busy,
        _behind_others_in_fifo,
        _no_leader,
        _leader_lacks_pipeline,
        _tenant_at_limit,
        _workers_busy,
    ]
    return next(
        (cause for rule in rules if (cause := rule(situation)) is not None),
        _next_in_line(situation),
    )


def _delayed(s: Situation) -> Cause | None:
    due = s.run.available
    if due is None or due <= s.now:
        return None
    left = humanise(due - s.now)
    facts: dict[str, Any] = {"until": at(due), "seconds": due - s.now}
    event = next((e for e in reversed(s.history) if e.type == EventType.RETRYING), None)
    if event is None:
        return Cause(
            "delayed", f"It was submitted with a delay and can be claimed in {left}.", None, facts
        )
    data = readable(event.data)
    error = data.get("error") or {}
    why = f"{error.get('name', 'an error')}: {error.get('message', '')}".rstrip(": ")
    return Cause(
        "backoff",
        f"Attempt {data.get('attempt', s.run.attempts)} of {s.run.attempt_limit} failed with "
        f"{why}; it is tried again in {left}.",
        None,
        {**facts, "error": error.get("name"), "message": error.get("message")},
    )


def _lane_blocked(s: Situation) -> Cause | None:
    head = s.blocked_by
    if head is None:
        return None
    id = s.shown_id(head)
    return Cause(
        "lane_blocked",
        f"Lane {s.run.lane} is blocked by {s.shown(head)}, which failed at its head; "
        f"{_number(len(s.ahead), 'run')} would come before this one.",
        f"`holdfast runs resume {id}` or `holdfast dlq discard run:{id}`" if id else None,
        {"lane": s.run.lane, "blocked_by": id, "ahead": len(s.ahead)},
    )


def _no_worker(s: Situation) -> Cause | None:
    if s.serving:
        return None
    alive = [worker for worker in s.workers if worker.state == "alive"]
    facts: dict[str, Any] = {
        "pipeline": s.run.pipeline,
        "workers": [worker.name for worker in alive],
        "versions": sorted({worker.version for worker in alive}),
    }
    if not alive:
        lost = min(s.workers, key=lambda worker: worker.silent, default=None)
        last = (
            f" (the last one, {lost.name}, was heard of {humanise(lost.silent)} ago)"
            if lost
            else ""
        )
        return Cause(
            "no_worker",
            f"No worker is alive{last}; it has waited for {s.waited}.",
            "`holdfast worker` starts one",
            facts,
        )
    names = ", ".join(sorted({name for worker in alive for name in worker.pipelines})) or "nothing"
    return Cause(
        "no_worker_serves",
        f"{_number(len(alive), 'worker')} {'is' if len(alive) == 1 else 'are'} alive and none "
        f"serves pipeline {s.run.pipeline}: they serve {names} (holdfast "
        f"{', '.join(facts['versions'])}).",
        "start a worker with --app of the code that declares it, or deploy that code",
        facts,
    )


def _lane_busy(s: Situation) -> Cause | None:
    if not s.is_fifo or not s.running or s.ahead:
        return None
    other = s.running[0]
    since = humanise(s.now - (other.started or s.now))
    return Cause(
        "lane_busy",
        f"It is the next one of lane {s.run.lane}, which executes one run at a time: "
        f"{s.shown(other)} has been running for {since} on worker {other.worker}"
        f"{_beat(s, other.worker)}.",
        None,
        {"lane": s.run.lane, "running": s.shown_id(other), "worker": other.worker, "ahead": 0},
    )


def _behind_others_in_fifo(s: Situation) -> Cause | None:
    head = s.head
    if not s.is_fifo or not s.ahead or head is None:
        return None
    now = f"{s.shown(s.running[0])} is running" if s.running else f"{s.shown(head)} is at its head"
    due = head.available
    waits = f" and waits for {humanise(due - s.now)} more" if due and due > s.now else ""
    return Cause(
        "lane_position",
        f"It is number {_amount(len(s.ahead) + 1)} in lane {s.run.lane}, which executes one run at "
        f"a time in strict order; {now}{waits if not s.running else ''}.",
        None,
        {"lane": s.run.lane, "ahead": len(s.ahead), "head": s.shown_id(head)},
    )


def _no_leader(s: Situation) -> Cause | None:
    if s.lane is None or not s.is_fifo or s.lane.leader is not None:
        return None
    return Cause(
        "no_leader",
        f"Lane {s.run.lane} has no leader now (its last term was {s.lane.term}); one of "
        f"{_number(len(s.serving), 'worker')} takes the lead when the lease before has ended.",
        None,
        {"lane": s.run.lane, "term": s.lane.term},
    )


def _leader_lacks_pipeline(s: Situation) -> Cause | None:
    if s.lane is None or not s.is_fifo or s.lane.leader is None:
        return None
    leader = next((worker for worker in s.workers if worker.name == s.lane.leader), None)
    facts = {"lane": s.run.lane, "leader": s.lane.leader, "pipeline": s.run.pipeline}
    if leader is None or leader.state == "lost":
        silent = f" and has not been heard of for {humanise(leader.silent)}" if leader else ""
        return Cause(
            "leader_lost",
            f"Worker {s.lane.leader} leads lane {s.run.lane}{silent}: the lane goes on under "
            "another leader when its lease has ended.",
            None,
            {**facts, "silent": leader.silent if leader else None},
        )
    if s.run.pipeline in leader.pipelines:
        return None
    return Cause(
        "leader_lacks_pipeline",
        f"Worker {leader.name} leads lane {s.run.lane} and does not serve pipeline "
        f"{s.run.pipeline}: nobody else may claim from the lane.",
        f"deploy the pipeline there, or `holdfast lanes step-down {s.run.lane}`",
        facts,
    )


def _tenant_at_limit(s: Situation) -> Cause | None:
    running = s.of_tenant.get(RunState.RUNNING, 0)
    if s.limit is None or running < s.limit:
        return None
    return Cause(
        "tenant_limit",
        f"Tenant {s.run.tenant} has {running} of {s.limit} running runs, and {_ahead(s)} before "
        f"this one; it has waited for {s.waited}.",
        f"wait, or `holdfast tenants set {s.run.tenant} --running N`",
        {
            "tenant": s.run.tenant,
            "running": running,
            "limit": s.limit,
            "ahead": len(s.ahead),
        },
    )


def _workers_busy(s: Situation) -> Cause | None:
    if any(s.active.get(worker.name, 0) < worker.concurrency for worker in s.serving):
        return None
    active = sum(s.active.get(worker.name, 0) for worker in s.serving)
    slots = sum(worker.concurrency for worker in s.serving)
    is_one = len(s.serving) == 1
    return Cause(
        "workers_busy",
        f"{'The' if is_one else 'All'} {_number(len(s.serving), 'worker')} that "
        f"{'serves' if is_one else 'serve'} pipeline {s.run.pipeline} "
        f"{'is' if is_one else 'are'} busy ({active} of {slots} slots); "
        f"{_ahead(s)} before this one, and it has waited for {s.waited}.",
        "start more workers, or raise --concurrency",
        {
            "workers": [worker.name for worker in s.serving],
            "active": active,
            "slots": slots,
            "ahead": len(s.ahead),
        },
    )


def _next_in_line(s: Situation) -> Cause:
    lost = next((e for e in reversed(s.history) if e.type == EventType.WORKER_LOST), None)
    after = f" Its worker was lost {humanise(s.now - lost.at)} ago." if lost else ""
    return Cause(
        "next",
        f"Nothing keeps it: {_number(len(s.serving), 'worker')} can claim it, and {_ahead(s)} "
        f"before it. It has waited for {s.waited}.{after}",
        None,
        {"workers": [worker.name for worker in s.serving], "ahead": len(s.ahead)},
    )


def _beat(s: Situation, name: str | None) -> str:
    worker = next((worker for worker in s.workers if worker.name == name), None)
    return f", whose last beat was {humanise(worker.silent)} ago" if worker else ""


def _ahead(s: Situation) -> str:
    verb = "comes" if len(s.ahead) == 1 else "come"
    return f"{_number(len(s.ahead), 'run')} of tenant {s.run.tenant} {verb}"


def _number(count: int, noun: str) -> str:
    return f"{_amount(count)} {noun}{'' if count == 1 else 's'}"


def _amount(count: int) -> str:
    return f"{LOOKED_AT:,} or more" if count >= LOOKED_AT else str(count)
