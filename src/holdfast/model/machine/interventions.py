"""What people, the sweeper and retention do to runs and lanes, against a worker's will if need
be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from holdfast.model.commands import (
    RUN_LETTER,
    Cancel,
    DefineLane,
    LimitTenant,
    PauseRun,
    Prune,
    Resume,
    RunCommand,
    Subject,
    Sweep,
)
from holdfast.model.event import EventType
from holdfast.model.lane import HeadPolicy, Lane, Order
from holdfast.model.lease_losses import REMEDY, losses_in, record_key
from holdfast.model.machine.changes import (
    AddAudit,
    CloseLetter,
    Decision,
    PutLane,
    PutTenant,
    RemoveRun,
    encode,
    move,
)
from holdfast.model.machine.facts import Facts, LocalFacts, Now, RunFacts
from holdfast.model.machine.failing import fail
from holdfast.model.replies import Refused
from holdfast.model.run import FINISHED, ErrorInfo, RunState

PAUSABLE = (RunState.QUEUED, RunState.RUNNING)
RESUMABLE = (RunState.PAUSED, RunState.FAILED)


def _refused(run: RunFacts | None) -> Decision:
    return Decision(Refused(run.state if run else None))


def cancel(command: Cancel, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or not run.state.live:
        return _refused(run)
    data = {"from": run.state, "actor": command.actor, "reason": command.reason}
    fields = {"epoch": run.epoch + 1, "reason": command.reason or None}
    changes = move(run, EventType.CANCELLED, data, now, **fields)
    return Decision(None, [*changes, _audit(command, "run.cancel", command.reason)])


def pause_run(command: PauseRun, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state not in PAUSABLE:
        return _refused(run)
    data = {"from": run.state, "actor": command.actor, "reason": command.reason}
    fields = {"epoch": run.epoch + 1, "reason": command.reason or None}
    if run.state is RunState.RUNNING:  # the attempt does not count
        fields["attempts"] = run.attempts - 1
    changes = move(run, EventType.PAUSED, data, now, **fields)
    return Decision(None, [*changes, _audit(command, "run.pause", command.reason)])


def resume(command: Resume, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state not in RESUMABLE or command.epoch not in (None, run.epoch):
        return _refused(run)
    holder = facts.slot_holder(run.tenant, run.pipeline) if run.unique else None
    if holder is not None and holder.id != run.id:
        return Decision(Refused(run.state, holder.id))
    data = {"from": run.state, "actor": command.actor, "reason": ""}
    if command.message is not None:
        data["message"] = command.message
    fields = {"error": None, "holds_lane": False, "attempt_limit": run.attempts + command.attempts}
    changes = move(run, EventType.RESUMED, data, now, **fields)
    letter = facts.letter(f"{RUN_LETTER}{run.id}")
    if letter is not None and letter.closed is None:
        changes.append(CloseLetter(letter.id, "redriven"))
    return Decision(None, [*changes, _audit(command, "run.resume", "")])


def _audit(command: Cancel | PauseRun | Resume, action: str, reason: str) -> AddAudit:
    return AddAudit(command.actor, action, command.run, reason)


# --- the sweeper and retention: each run is a decision of its own ---


class SweepRun(RunCommand[tuple[str, str] | None], frozen=True):
    """What `Sweep` does to one of the runs that it found. None: its lease has not ended."""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run), ("record", record_key(self.run))]


class PruneRun(RunCommand[tuple[str, str] | None], frozen=True):
    """What `Prune` does to one of the runs that it found. None: it goes on meanwhile."""


def sweep(command: Sweep, facts: LocalFacts, now: Now) -> Decision:
    runs = facts.ended_leases(command.limit, now)
    return _together([sweep_run(SweepRun(run.id), facts, now) for run in runs])


def prune(command: Prune, facts: LocalFacts, now: Now) -> Decision:
    runs = facts.expired(command, now)
    return _together([prune_run(PruneRun(run.id), facts, now) for run in runs])


def _together(decisions: Sequence[Decision]) -> Decision:
    changes = [change for decision in decisions for change in decision.changes]
    return Decision([decision.reply for decision in decisions if decision.reply], changes)


def sweep_run(command: SweepRun, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state is not RunState.RUNNING or run.is_held(run.epoch, now):
        return Decision(None)
    if run.attempts < run.attempt_limit:
        state = RunState.QUEUED
        changes = move(run, EventType.WORKER_LOST, {"attempt": run.attempts}, now)
    else:
        state = RunState.FAILED
        data = {"attempt": run.attempts}
        changes = fail(run, encode(_worker_lost(run, facts, now)).decode(), data, facts, now)
    return Decision((run.id, state), changes, ended=run.lease_until)


def _worker_lost(run: RunFacts, facts: Facts, now: Now) -> ErrorInfo:
    record = facts.record(record_key(run.id))
    losses = losses_in(record.value) if record is not None and record.is_live(now) else None
    if losses is not None:
        return ErrorInfo(
            "InterpreterBlocked",
            f"{run.attempts} workers lost this run, and {losses.count} of them say why: "
            f"{losses.last}. {REMEDY}, then resume the run",
        )
    return ErrorInfo(
        "WorkerLost",
        f"the worker vanished {run.attempts} times while it had this run; look at what kills it, "
        "then resume the run",
    )


def prune_run(command: PruneRun, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state not in FINISHED:
        return Decision(None)
    return Decision((run.id, run.tenant), [RemoveRun(run.id)])


# --- lanes ---


def define_lane(command: DefineLane, facts: Facts, now: Now) -> Decision:
    """A lane never changes its order: the runs in it were accepted under the one it has."""
    assert command.order in get_args(Order)
    assert command.head in get_args(HeadPolicy)
    known = facts.lane(command.name)
    order = known.order if known else cast(Order, command.order)
    lane = Lane(command.name, order, cast(HeadPolicy, command.head))
    return Decision(order, [] if lane == known else [PutLane(lane)])


# --- tenants ---


def limit_tenant(command: LimitTenant, facts: Facts, now: Now) -> Decision:
    reason = "no limit" if command.running is None else f"{command.running} running runs"
    audit = AddAudit(command.actor, "tenant.limit", command.tenant, reason)
    return Decision(None, [PutTenant(command.tenant, command.running), audit])
