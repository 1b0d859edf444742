"""Why a run is not running, or why it failed: one causal sentence with figures, and the facts
behind it. What `holdfast explain`, `app.explain` and the API answer.

Nothing is changed, and nothing rests on it: workers' records may be some seconds old."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.adapters.records import StoreRecords
from holdfast.engine.tenants import readable_tenants, tenant_key
from holdfast.model.duration import humanise
from holdfast.model.event import Event, EventType
from holdfast.model.lease_losses import REMEDY, LeaseLosses, losses_in, record_key
from holdfast.model.run import Run, RunState, StepStatus
from holdfast.ports.store import RunFilter, Store
from holdfast.services.explained_waiting import LOOKED_AT, Cause, Situation, why_waiting
from holdfast.services.head_of_lane import oldest_queued
from holdfast.services.views import at, readable
from holdfast.services.workers import WorkerView, list_workers

FAILURES = {"InterpreterBlocked": "interpreter_blocked", "WorkerLost": "worker_lost"}
"""Errors that are causes of their own."""


DAMAGE_REMEDY = (
    "restore the store from a backup; `holdfast runs show` prints what can be read of its steps"
)


class Explanation(Struct):
    """`cause` is one of the words in docs/reference/cli.md, for programs; `remedy` is what to do
    about it, if anything."""

    run: str
    state: str
    cause: str
    sentence: str
    remedy: str | None
    facts: dict[str, Any]


async def explain(store: Store, run: Run, *, tenant: str | None = None) -> Explanation:
    """Why a run is where it is. `tenant` is who asks, if it is a tenant: then the runs of others
    are not named."""
    now = (await store.record(record_key(run.id))).now
    history = await store.history(run.id)
    match run.state:
        case _ if run.damage and not run.pipeline:
            cause = Cause("damaged", f"It is damaged: {run.damage}.", DAMAGE_REMEDY)
        case RunState.QUEUED:
            cause = why_waiting(await _situation(store, run, now, history, tenant))
        case RunState.RUNNING:
            cause = _running(run, now, await list_workers(StoreRecords(store)))
        case RunState.PAUSED:
            cause = _paused(run, now, history)
        case RunState.FAILED:
            cause = await _failed(store, run, now, history)
        case _:
            cause = _over(run, now, history)
    losses = await _losses(store, run.id)
    waits_or_runs = run.state in (RunState.QUEUED, RunState.RUNNING)
    if losses is not None and (waits_or_runs or cause.word == FAILURES["WorkerLost"]):
        cause = _with_losses(cause, losses)
    facts = {"attempt": run.attempts, "attempt_limit": run.attempt_limit, **cause.facts}
    state = "broken" if cause.word == "damaged" else str(run.state)
    return Explanation(run.id, state, cause.word, cause.sentence, cause.remedy, facts)


async def _situation(
    store: Store, run: Run, now: float, history: list[Event], tenant: str | None
) -> Situation:
    records = StoreRecords(store)
    lane = next((lane for lane in await store.lanes() if lane.name == run.lane), None)
    is_fifo = lane is not None and lane.order == "fifo"
    head = lane.blocked_by if lane else None
    tenants = readable_tenants((await records.get(tenant_key(run.tenant))).records)
    return Situation(
        run,
        now,
        history,
        lane,
        await list_workers(records),
        await _ahead(store, run, is_fifo, now),
        next(iter(await oldest_queued(store, run.lane)), None) if is_fifo else None,
        await store.runs(RunFilter(lane=run.lane, state=RunState.RUNNING), limit=1),
        await store.count(RunFilter(tenant=run.tenant)),
        tenants[0].quotas.running if tenants else None,
        await _active(store),
        await store.run(head) if head else None,
        tenant,
    )


async def _active(store: Store) -> dict[str, int]:
    running = await store.runs(RunFilter(state=RunState.RUNNING), limit=LOOKED_AT)
    return Counter(run.worker for run in running if run.worker is not None)


async def _ahead(store: Store, run: Run, is_fifo: bool, now: float) -> list[Run]:
    where = RunFilter(None if is_fifo else run.tenant, lane=run.lane, state=RunState.QUEUED)
    ahead = await store.runs(where, limit=LOOKED_AT, before=run.seq)
    if is_fifo:
        return ahead
    others = {other.id: other for other in await store.runs(where, limit=LOOKED_AT)}
    others |= {other.id: other for other in ahead}
    position = (-run.priority, run.seq)
    due = [other for other in others.values() if (other.available or 0.0) <= now]
    first = [other for other in due if (-other.priority, other.seq) < position]
    return first[:LOOKED_AT]


def _running(run: Run, now: float, workers: list[WorkerView]) -> Cause:
    worker = next((worker for worker in workers if worker.name == run.worker), None)
    step = next(
        (
            record
            for record in run.progress.steps.values()
            if record.status == StepStatus.IN_PROGRESS
        ),
        None,
    )
    facts: dict[str, Any] = {
        "worker": run.worker,
        "step": step.step if step else None,
        "last_beat": worker.last_beat if worker else None,
    }
    attempt = f"attempt {run.attempts} of {run.attempt_limit}"
    if worker is None or worker.state == "lost":
        silent = f"for {humanise(worker.silent)}" if worker else "and its record is gone"
        return Cause(
            "worker_lost",
            f"Its worker {run.worker} has not been heard of {silent}; when the lease has ended, "
            f"another worker returns the run to its queue ({attempt}).",
            "start a worker if there is none: `holdfast workers list`",
            {**facts, "silent": worker.silent if worker else None},
        )
    where = f" in step {step.step}" if step else ""
    for_how_long = f" for {humanise(now - step.started)}" if step and step.started else ""
    items = f", {step.done} of {step.total} done" if step and step.total else ""
    return Cause(
        "running",
        f"It is running{where}{for_how_long}{items} on worker {run.worker}, whose last beat was "
        f"{humanise(worker.silent)} ago ({attempt}).",
        None,
        {**facts, "silent": worker.silent},
    )


def _paused(run: Run, now: float, history: list[Event]) -> Cause:
    event = _last(history, EventType.PAUSED)
    data = readable(event.data) if event else {}
    actor, reason = data.get("actor"), data.get("reason") or run.reason or ""
    who = f"by {actor} " if actor else "by one of its steps "
    since = humanise(now - event.at) if event else "an unknown time"
    return Cause(
        "paused",
        f"It was paused {who}{since} ago{f': {reason}' if reason else ''}.",
        f"`holdfast runs resume {run.id}` lets it go on from its checkpoints",
        {"actor": actor, "reason": reason, "since": at(event.at) if event else None},
    )


async def _failed(store: Store, run: Run, now: float, history: list[Event]) -> Cause:
    letter = await store.dead_letter(f"run:{run.id}")
    is_open = letter is not None and letter.closed is None
    event = _last(history, EventType.FAILED)
    error = run.error
    retried = run.attempts >= run.attempt_limit
    why = "its attempts are used up" if retried else "trying again can't help"
    ago = humanise(now - (run.finished or now))
    blocks = any(lane.blocked_by == run.id for lane in await store.lanes())
    sentence = (
        f"It failed {ago} ago in attempt {run.attempts} of {run.attempt_limit}, because {why}: "
        f"{error or 'no error is stored'}."
    )
    if blocks:
        sentence += f" Lane {run.lane} waits until it is resumed or its dead letter is discarded."
    return Cause(
        FAILURES.get(error.name if error else "", "failed"),
        sentence,
        f"fix the cause, then `holdfast runs resume {run.id}`: it goes on from its checkpoints"
        + (f", or `holdfast dlq discard run:{run.id}`" if is_open else ""),
        {
            "error": error.name if error else None,
            "message": error.message if error else None,
            "step": error.step if error else None,
            "dead_letter": letter.id if letter is not None and is_open else None,
            "blocks_lane": run.lane if blocks else None,
            "failed": at(event.at if event else run.finished),
        },
    )


def _over(run: Run, now: float, history: list[Event]) -> Cause:
    ago = humanise(now - (run.finished or now))
    if run.state == RunState.SUCCEEDED:
        return Cause("succeeded", f"It succeeded {ago} ago; there is nothing left to do.")
    event = _last(history, EventType.CANCELLED)
    data = readable(event.data) if event else {}
    actor, reason = data.get("actor"), data.get("reason")
    return Cause(
        "cancelled",
        f"It was cancelled by {actor} {ago} ago{f': {reason}' if reason else ''}.",
        "a cancelled run never goes on: `holdfast runs rerun` makes a new one",
        {"actor": actor, "reason": reason},
    )


async def _losses(store: Store, run: str) -> LeaseLosses | None:
    page = await store.record(record_key(run))
    return losses_in(page.records[0].value) if page.records else None


def _with_losses(cause: Cause, losses: LeaseLosses) -> Cause:
    """Workers may have noted it after the run was given up."""
    is_over = cause.word == FAILURES["WorkerLost"]
    return msgspec.structs.replace(
        cause,
        word=FAILURES["InterpreterBlocked"] if is_over else cause.word,
        sentence=f"{cause.sentence} It lost its lease {losses.count} times before because "
        f"{losses.last}." + (f" {REMEDY}." if is_over else ""),
        remedy=cause.remedy or REMEDY,
        facts={**cause.facts, "lease_losses": losses.count, "blocked_seconds": losses.last.seconds},
    )


def _last(history: list[Event], kind: str) -> Event | None:
    return next((event for event in reversed(history) if event.type == kind), None)
