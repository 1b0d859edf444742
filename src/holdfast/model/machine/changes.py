"""What a decision changes. A store writes all changes of a decision together, or none.

Stores number events: the next number of the run, the next position of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.errors import Unwritable
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Submit
from holdfast.model.event import STATE_AFTER, EventType
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LockFacts, Now, RecordFacts, RunFacts
from holdfast.model.run import FINISHED, TRANSITIONS, RunState

encode = msgspec.json.Encoder().encode
_decode_strings = msgspec.json.Decoder(dict[str, str]).decode


class AddRun(Struct, frozen=True):
    """`run.seq` is the store's to give: the order of acceptance."""

    run: RunFacts
    checkpoints: Sequence[Checkpoint] = ()

    @property
    def submit(self) -> Submit:
        """The command that makes this run, for servers that have it in their own language."""
        run = self.run
        return Submit(
            run.id,
            run.tenant,
            run.pipeline,
            run.lane,
            run.input,
            run.fingerprint,
            run.key,
            run.unique,
            run.priority,
            run.delay,
            run.attempt_limit,
            run.parent,
            self.checkpoints,
            _decode_strings(run.labels) if run.labels else {},
            _decode_strings(run.attributes) if run.attributes else {},
        )


class ChangeRun(Struct, frozen=True):
    """Fields of `RunFacts` and their new values."""

    run: str
    fields: dict[str, Any]


class RemoveRun(Struct, frozen=True):
    """With all that belongs to it: checkpoints, events, log, quarantine, dead letter."""

    run: str


class AddEvent(Struct, frozen=True, gc=False):
    """`data` is JSON."""

    run: str
    type: str
    data: str = "{}"


class AddLetterEvent(Struct, frozen=True):
    """The only event of a message that became a dead letter."""

    letter: str
    type: str
    data: str


class PutCheckpoint(Struct, frozen=True, gc=False):
    run: str
    checkpoint: Checkpoint


class MoveToQuarantine(Struct, frozen=True):
    """Take a checkpoint out of use, and keep it."""

    run: str
    step: str
    key: str
    reason: str


class AddLogLine(Struct, frozen=True, gc=False):
    run: str
    level: str
    step: str
    message: str
    fields: str


class OpenLetter(Struct, frozen=True):
    """Keep a dead letter, or open it again: then `body` and the time of its creation stay.

    The body of a run's letter is the run's input: it is not stored twice."""

    id: str
    source: str
    reason: str
    attributes: dict[str, str]
    tenant: str
    run: str | None = None
    body: bytes | None = None


class CloseLetter(Struct, frozen=True):
    id: str
    resolution: str


class AddAudit(Struct, frozen=True):
    actor: str
    action: str
    target: str
    reason: str


class PutLock(Struct, frozen=True):
    lock: LockFacts


class PutLane(Struct, frozen=True):
    lane: Lane


class PutTenant(Struct, frozen=True):
    """How many runs of a tenant may run at once; None: as many as there are."""

    tenant: str
    running: int | None


class WriteRecord(Struct, frozen=True):
    record: RecordFacts


class RemoveRecord(Struct, frozen=True):
    key: str


Change = (
    AddRun
    | ChangeRun
    | RemoveRun
    | AddEvent
    | AddLetterEvent
    | PutCheckpoint
    | MoveToQuarantine
    | AddLogLine
    | OpenLetter
    | CloseLetter
    | AddAudit
    | PutLock
    | PutLane
    | PutTenant
    | WriteRecord
    | RemoveRecord
)


class Decision(Struct):
    """What a command is answered, and what it changes.

    A store that decides on facts which may have changed since writes only if what was looked at has
    not: of a run its state and epoch, of everything else all of it. A command that rests on a lease
    is written only before `until` (of `Now.mono`), one that rests on a lease's end only if that is
    still `ended`."""

    reply: Any
    changes: Sequence[Change] = ()
    until: float | None = None
    ended: float | None = None


def move(
    run: RunFacts, event: EventType, data: dict[str, Any], now: Now, **fields: Any
) -> list[Change]:
    """Bring a run into the state that an event leads to: the only place where a state changes.

    It ends the lease and any delay. `worker` and `error` stay: who had the run last, what went
    wrong."""
    after = RunState(STATE_AFTER[event])
    if after not in TRANSITIONS[run.state]:
        raise Unwritable(f"run {run.id} is {run.state}, which {event} can't follow")
    changed = {
        "state": after,
        "reason": None,
        "available": None,
        "due": None,
        "lease_until": None,
        "finished": now.wall if after in FINISHED else None,
        **fields,
    }
    return [ChangeRun(run.id, changed), AddEvent(run.id, event, encode(data).decode())]
