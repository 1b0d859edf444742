"""Accepting runs: once per id, once per key, once per unique slot."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.adapters.memory.state import State, StoredRun
from holdfast.model.commands import Submit, Submitted
from holdfast.model.run import Run, RunState


def submit(state: State, command: Submit) -> Submitted:
    if same := state.runs.get(command.id):
        return Submitted(command.id, created=True, state=same.run.state)
    if twin := _same_key(state, command):
        conflict = twin.run.fingerprint != command.fingerprint
        return Submitted(twin.run.id, created=False, state=twin.run.state, conflict=conflict)
    run = _new_run(state, command)
    if command.unique and (live := state.slot_holder(run)):
        return Submitted(live.run.id, created=False, state=live.run.state)
    _accept(state, command, run)
    return Submitted(run.id, created=True, state=run.state)


def _same_key(state: State, command: Submit) -> StoredRun | None:
    if command.key is None:
        return None
    return state.runs.get(state.keys.get((command.tenant, command.key), ""))


def _new_run(state: State, command: Submit) -> Run:
    now = state.clock.now()
    return Run(
        id=command.id,
        tenant=command.tenant,
        pipeline=command.pipeline,
        lane=command.lane,
        state=RunState.QUEUED,
        seq=state.last_seq + 1,
        priority=command.priority,
        key=command.key,
        fingerprint=command.fingerprint,
        parent=command.parent,
        attempt_limit=command.max_attempts,
        created=now,
        available=now + command.delay if command.delay > 0 else None,
        input=command.input,
    )


def _accept(state: State, command: Submit, run: Run) -> None:
    state.last_seq = run.seq
    if run.key is not None:
        state.keys[run.tenant, run.key] = run.id
    if command.unique:
        state.unique_slots[run.tenant, run.pipeline] = run.id
    copied = {(found.step, found.key): replace(found, epoch=0) for found in command.checkpoints}
    due = state.clock.monotonic() + command.delay
    state.add(
        StoredRun(run, unique=command.unique, due=due, inherits=bool(copied), checkpoints=copied)
    )
