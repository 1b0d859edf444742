"""What people, the sweeper and retention do to runs and lanes, against a worker's will if need
be."""

from __future__ import annotations

from typing import cast, get_args

from holdfast.model.commands import RUN_LETTER, Cancel, DefineLane, PauseRun, Prune, Resume, Sweep
from holdfast.model.event import EventType
from holdfast.model.lane import HeadPolicy, Lane, Order
from holdfast.model.machine.changes import (
    AddAudit,
    Change,
    CloseLetter,
    Decision,
    PutLane,
    RemoveRun,
    encode,
    move,
)
from holdfast.model.machine.facts import Facts, Now, RunFacts
from holdfast.model.machine.failing import fail
from holdfast.model.replies import Refused
from holdfast.model.run import ErrorInfo, RunState

PAUSABLE = (RunState.QUEUED, RunState.RUNNING)
RESUMABLE = (RunState.PAUSED, RunState.FAILED)


def _refused(run: RunFacts | None) -> Decision:
    return Decision(Refused(run.state if run else None))


def cancel(command: Cancel, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or not run.state.live:
        return _refused(run)
    data = {"actor": command.actor, "reason": command.reason}
    fields = {"epoch": run.epoch + 1, "reason": command.reason or None}
    changes = move(run, EventType.CANCELLED, data, now, **fields)
    return Decision(None, [*changes, _audit(command, "run.cancel", command.reason)])


def pause_run(command: PauseRun, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state not in PAUSABLE:
        return _refused(run)
    data = {"actor": command.actor, "reason": command.reason}
    fields = {"epoch": run.epoch + 1, "reason": command.reason or None}
    if run.state is RunState.RUNNING:  # the attempt does not count
        fields["attempts"] = run.attempts - 1
    changes = move(run, EventType.PAUSED, data, now, **fields)
    return Decision(None, [*changes, _audit(command, "run.pause", command.reason)])


def resume(command: Resume, facts: Facts, now: Now) -> Decision:
    run = facts.run(command.run)
    if run is None or run.state not in RESUMABLE:
        return _refused(run)
    holder = facts.slot_holder(run.tenant, run.pipeline) if run.unique else None
    if holder is not None and holder.id != run.id:
        return Decision(Refused(run.state, holder.id))
    data = {"actor": command.actor, "reason": ""}
    fields = {"error": None, "holds_lane": False, "attempt_limit": run.attempts + command.attempts}
    changes = move(run, EventType.RESUMED, data, now, **fields)
    letter = facts.letter(f"{RUN_LETTER}{run.id}")
    if letter is not None and letter.closed is None:
        changes.append(CloseLetter(letter.id, "redriven"))
    return Decision(None, [*changes, _audit(command, "run.resume", "")])


def _audit(command: Cancel | PauseRun | Resume, action: str, reason: str) -> AddAudit:
    return AddAudit(command.actor, action, command.run, reason)


# --- the sweeper and retention ---


def sweep(command: Sweep, facts: Facts, now: Now) -> Decision:
    swept: list[tuple[str, str]] = []
    changes: list[Change] = []
    for run in facts.ended_leases(command.limit, now):
        is_last = run.attempts >= run.attempt_limit
        changes += _lose_worker(run, facts, now, is_last=is_last)
        swept.append((run.id, RunState.FAILED if is_last else RunState.QUEUED))
    return Decision(swept, changes)


def _lose_worker(run: RunFacts, facts: Facts, now: Now, *, is_last: bool) -> list[Change]:
    if not is_last:
        return move(run, EventType.WORKER_LOST, {"attempt": run.attempts}, now)
    error = ErrorInfo(
        "WorkerLost",
        f"the worker vanished {run.attempts} times while it had this run; look at what kills it, "
        "then resume the run",
    )
    return fail(run, encode(error).decode(), facts, now)


def prune(command: Prune, facts: Facts, now: Now) -> Decision:
    runs = facts.expired(command, now)
    return Decision([(run.id, run.tenant) for run in runs], [RemoveRun(run.id) for run in runs])


# --- lanes ---


def define_lane(command: DefineLane, facts: Facts, now: Now) -> Decision:
    """A lane never changes its order: the runs in it were accepted under the one it has."""
    assert command.order in get_args(Order)
    assert command.head in get_args(HeadPolicy)
    known = facts.lane(command.name)
    order = known.order if known else cast(Order, command.order)
    lane = Lane(command.name, order, cast(HeadPolicy, command.head))
    return Decision(order, [] if lane == known else [PutLane(lane)])
