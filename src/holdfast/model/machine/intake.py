"""Accepting runs: once per id, once per key, once per unique slot."""

from __future__ import annotations

from holdfast.model.commands import Submit
from holdfast.model.event import EventType
from holdfast.model.machine.changes import AddEvent, AddRun, Decision, encode
from holdfast.model.machine.facts import Facts, Now, RunFacts
from holdfast.model.replies import Submitted
from holdfast.model.run import RunState


def submit(command: Submit, facts: Facts, now: Now) -> Decision:
    if same := facts.run(command.id):
        return Decision(Submitted(command.id, created=True, state=same.state))
    if command.key is not None and (existing := facts.run_with_key(command.tenant, command.key)):
        conflict = existing.fingerprint != command.fingerprint
        return Decision(
            Submitted(existing.id, created=False, state=existing.state, conflict=conflict)
        )
    if command.unique and (live := facts.slot_holder(command.tenant, command.pipeline)):
        return Decision(Submitted(live.id, created=False, state=live.state))
    changes = [AddRun(_new_run(command, now), command.checkpoints), AddEvent(command.id, QUEUED)]
    return Decision(Submitted(command.id, created=True, state=RunState.QUEUED), changes)


QUEUED = str(EventType.QUEUED)


def _new_run(command: Submit, now: Now) -> RunFacts:
    is_delayed = command.delay > 0
    return RunFacts(
        id=command.id,
        tenant=command.tenant,
        pipeline=command.pipeline,
        lane=command.lane,
        state=RunState.QUEUED,
        priority=command.priority,
        key=command.key,
        fingerprint=command.fingerprint,
        unique=command.unique,
        parent=command.parent,
        inherits=bool(command.checkpoints),
        created=now.wall,
        labels=encode(command.labels).decode() if command.labels else None,
        attributes=encode(command.attributes).decode() if command.attributes else None,
        input=command.input,
        attempt_limit=command.max_attempts,
        available=now.wall + command.delay if is_delayed else None,
        due=now.mono + command.delay if is_delayed else None,
        delay=command.delay,
    )
