"""What people, the sweeper and retention do to runs and lanes, against a worker's will if need
be."""

from __future__ import annotations

from typing import cast, get_args

from msgspec.structs import replace

from holdfast.adapters.memory.deadletters import close
from holdfast.adapters.memory.failing import fail
from holdfast.adapters.memory.state import FINISHED, State, StoredRun, dead_letter_id
from holdfast.model.commands import Cancel, DefineLane, PauseRun, Prune, Refused, Resume, Sweep
from holdfast.model.event import EventType
from holdfast.model.lane import HeadPolicy, Lane, Order
from holdfast.model.run import ErrorInfo, RunState

PAUSABLE = (RunState.QUEUED, RunState.RUNNING)
RESUMABLE = (RunState.PAUSED, RunState.FAILED)


# --- interventions ---


def cancel(state: State, command: Cancel) -> Refused | None:
    row = state.runs.get(command.run)
    if row is None or not row.run.state.live:
        return _refused(row)
    row.run.epoch += 1
    data = {"actor": command.actor, "reason": command.reason}
    state.change(row, EventType.CANCELLED, data, command.reason or None)
    state.note(command.actor, "run.cancel", command.run, command.reason)
    return None


def pause_run(state: State, command: PauseRun) -> Refused | None:
    row = state.runs.get(command.run)
    if row is None or row.run.state not in PAUSABLE:
        return _refused(row)
    row.run.epoch += 1
    if row.run.state is RunState.RUNNING:
        row.run.attempts -= 1
    data = {"actor": command.actor, "reason": command.reason}
    state.change(row, EventType.PAUSED, data, command.reason or None)
    state.note(command.actor, "run.pause", command.run, command.reason)
    return None


def resume(state: State, command: Resume) -> Refused | None:
    row = state.runs.get(command.run)
    if row is None or row.run.state not in RESUMABLE:
        return _refused(row)
    run = row.run
    if row.unique:
        if live := state.slot_holder(run):
            return Refused(run.state, live.run.id)
        state.unique_slots[run.tenant, run.pipeline] = run.id
    row.holds_lane = False
    run.error = None
    run.attempt_limit = run.attempts + command.attempts
    state.change(row, EventType.RESUMED, {"actor": command.actor, "reason": ""})
    close(state, dead_letter_id(run.id), "redriven")
    state.note(command.actor, "run.resume", command.run, "")
    return None


def _refused(row: StoredRun | None) -> Refused:
    return Refused(row.run.state if row else None)


# --- the sweeper ---


def sweep(state: State, command: Sweep) -> list[tuple[str, str]]:
    running = (row for row in state.runs.values() if row.run.state is RunState.RUNNING)
    lost = sorted(
        (row for row in running if state.lease_ended(row)), key=lambda row: row.lease_until
    )
    return [_give_up_on_worker(state, row) for row in lost[: command.limit]]


def _give_up_on_worker(state: State, row: StoredRun) -> tuple[str, str]:
    run = row.run
    if run.attempts < run.attempt_limit:
        state.change(row, EventType.WORKER_LOST, {"attempt": run.attempts})
    else:
        what = f"the worker vanished {run.attempts} times while it had this run"
        fail(
            state,
            row,
            ErrorInfo("WorkerLost", f"{what}; look at what kills it, then resume the run"),
        )
    return run.id, run.state


# --- retention ---


def prune(state: State, command: Prune) -> list[tuple[str, str]]:
    rows = [
        row
        for row in state.runs.values()
        if row.run.state in FINISHED and _expired(state, row, command)
    ]
    oldest = sorted(rows, key=lambda row: (row.run.finished or 0.0, row.run.seq))[: command.limit]
    for row in oldest:
        state.forget(row)
    return [(row.run.id, row.run.tenant) for row in oldest]


def _expired(state: State, row: StoredRun, command: Prune) -> bool:
    letter = state.dead_letters.get(dead_letter_id(row.run.id))
    is_open = letter is not None and letter.closed is None
    keep = command.keep_failed if row.run.state is RunState.FAILED or is_open else command.keep
    return (row.run.finished or 0.0) + keep <= state.clock.now() and not _still_needed(state, row)


def _still_needed(state: State, row: StoredRun) -> bool:
    """Whether a relay has yet to send its events, or a lane waits for it: others must not overtake
    it."""
    unsent = 0 < state.confirmed < row.history[-1].position
    return unsent or row.holds_lane


# --- lanes ---


def define_lane(state: State, command: DefineLane) -> str:
    assert command.order in get_args(Order)
    assert command.head in get_args(HeadPolicy)
    head = cast(HeadPolicy, command.head)
    known = state.lanes.get(command.name)
    state.lanes[command.name] = (
        replace(known, head=head) if known else Lane(command.name, cast(Order, command.order), head)
    )
    state.touch()
    return state.lanes[command.name].order
