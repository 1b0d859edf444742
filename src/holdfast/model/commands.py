"""The commands a store applies, and what it answers.

A command is a value. Each is atomic and fenced on its own; a store applies many in one round trip.
Commands carry no time: the store stamps what it writes with its own clock. What a command does is
written in `model/machine`; here stands what it carries, and what everybody has to know about it:
the type of its reply (`Command[R]`), what it concerns, and whom it wakes.

**The fence.** Commands with `run` and `epoch` are accepted only while that run is `running`, its
epoch is the given one and its lease has not ended by the store's clock. Otherwise nothing at all is
written and the answer is `STALE`.

**History.** Whatever changes a run's state writes its event in the same transaction, numbered one
higher than the run's last event."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec import Struct

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.replies import STALE as STALE
from holdfast.model.replies import Acquired, Claimed, Held, Refused, Stale, Submitted

R = TypeVar("R")


class Wake(IntEnum):
    """Whom a command wakes."""

    NOBODY = 0
    WAITERS = 1
    """Those who wait for a run to end, or for events to send."""
    WORKERS = 2
    """Those who look for something to claim, or for a lock; and the waiters."""


Subject = tuple[Literal["run", "lock", "letter", "record"], str]


class Command(Struct, Generic[R], frozen=True):
    """Something that a store does, and answers with an `R`."""

    @property
    def subjects(self) -> Sequence[Subject] | None:
        """What it concerns. Commands of a batch that have a subject in common take effect in the
        order given. None: it may concern anything, and keeps its place among all others."""
        return None

    @property
    def identity(self) -> Hashable:
        """Commands of one type and identity do not share a statement: the second has to see what
        the first did. None: it shares with all."""
        return None

    def wakes(self, reply: R) -> Wake:
        return Wake.NOBODY


# --- intake ---------------------------------------------------------------------------------------


class Submit(Command[Submitted], frozen=True, array_like=True, gc=False):
    """Accept a run. Writes the run and `run.queued`, unless the id, the key or the unique slot is
    taken.

    Taken by the same `id`: the answer is that run, `created` stays true for a repeated request.
    Taken by `(tenant, key)`: the answer is that run, with `conflict` set when its fingerprint
    differs. Taken by a live run of a `unique` pipeline for the tenant: the answer is that run."""

    id: str
    tenant: str
    pipeline: str
    lane: str
    input: str
    fingerprint: str
    key: str | None = None
    unique: bool = False
    priority: int = 0
    delay: float = 0.0
    max_attempts: int = 5
    parent: str | None = None
    checkpoints: Sequence[Checkpoint] = ()
    """Results taken over from the run that this one reruns; stored with epoch 0."""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.id)]

    @property
    def identity(self) -> Hashable:
        return "unique" if self.unique else None

    def wakes(self, reply: Submitted) -> Wake:
        return Wake.WORKERS


# --- execution ------------------------------------------------------------------------------------


class Claim(Command[list[Claimed]], frozen=True):
    """Lease up to `limit` queued runs of a lane: by priority, then in the order of acceptance.

    Only the named pipelines are claimed. Each claim raises the run's epoch and attempts by one and
    writes `run.started`. The sum of the inputs' sizes stays below `max_bytes`, but one run is
    always allowed.

    In a fifo lane `token` and `term` must be those of the current holder of the lock `lane:<name>`,
    and nothing is claimed while a run of the lane is running or holds it (head policy `block`);
    then only the head is considered: the first accepted run that is queued. If that waits for a
    retry or its pipeline is not named, the answer is empty."""

    worker: str
    lane: str
    pipelines: list[str]
    limit: int
    ttl: float
    max_bytes: int = 1 << 40
    token: str | None = None
    term: int = 0


class Renew(Command[list[tuple[str, int]]], frozen=True):
    """Extend the leases that are still held to now + ttl; never shortens one. The answer lists the
    lost pairs."""

    held: list[tuple[str, int]]
    ttl: float

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", run) for run, _ in self.held]

    @property
    def identity(self) -> Hashable:
        return "renewal"


class SaveCheckpoint(Command[Stale | None], frozen=True, array_like=True, gc=False):
    """Store the result of a step or item. Fenced. A step (`key == ""`) also writes `step.completed`
    or `step.skipped`, with `record` as its data. Repeating it replaces the value and changes
    nothing else."""

    run: str
    epoch: int
    step: str
    key: str
    value: str
    checksum: str
    schema: str
    fingerprint: str
    record: str
    skipped: bool = False

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    @property
    def identity(self) -> Hashable:
        return (self.run, self.step, self.key)


class Quarantine(Command[int | Stale], frozen=True):
    """Take a bad checkpoint out of use and keep it aside. Fenced. The answer is how many of this
    step's checkpoints (items included) were quarantined in this run so far."""

    run: str
    epoch: int
    step: str
    key: str
    reason: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]


class SaveProgress(Command[Stale | None], frozen=True, array_like=True, gc=False):
    """Replace what people see of the unfinished part (JSON of `Progress`). Fenced. No event."""

    run: str
    epoch: int
    progress: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    @property
    def identity(self) -> Hashable:
        return self.run


class LogLine(Command[Stale | None], frozen=True, array_like=True, gc=False):
    """Append a line to the run's log. Fenced. No event."""

    run: str
    epoch: int
    level: str
    step: str
    message: str
    fields: str = "{}"

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]


Outcome = Literal["succeeded", "failed", "paused", "retry", "handover"]

_AFTER: Final[dict[Outcome, Wake]] = {
    "succeeded": Wake.WAITERS,  # it leaves nothing to be claimed, but in a fifo lane
    "failed": Wake.WORKERS,
    "paused": Wake.WORKERS,
    "retry": Wake.WORKERS,
    "handover": Wake.WORKERS,
}


class Settle(Command[Stale | None], frozen=True, array_like=True, gc=False):
    """End an attempt: outcome, last checkpoint, event and the end of the lease in one transaction.
    Fenced.

    `succeeded` → succeeded with `result`; `failed` → failed with `error`, and one dead letter
    unless the run's fifo lane says `skip`; `paused` → paused with `reason`; `retry` → queued,
    claimable after `delay`; `handover` → queued at once. After a hand-over, a pause, or a
    `deferred` retry (which a step asked for and counts itself) the attempt does not count.

    `error` is JSON of `ErrorInfo`, `progress` JSON of `Progress`. `last` is the checkpoint of the
    final step."""

    run: str
    epoch: int
    outcome: Outcome
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    delay: float = 0.0
    progress: str = "{}"
    last: SaveCheckpoint | None = None
    deferred: bool = False

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    @property
    def identity(self) -> Hashable:
        return self.run

    def wakes(self, reply: Stale | None) -> Wake:
        return Wake.NOBODY if reply else _AFTER[self.outcome]


# --- operations -----------------------------------------------------------------------------------


class Cancel(Command[Refused | None], frozen=True):
    """Live → cancelled, at once, raising the epoch. `Refused` in any other state."""

    run: str
    actor: str
    reason: str = ""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    def wakes(self, reply: Refused | None) -> Wake:
        return Wake.NOBODY if reply else Wake.WORKERS


class PauseRun(Command[Refused | None], frozen=True):
    """Queued or running → paused, at once, raising the epoch; the attempt does not count."""

    run: str
    actor: str
    reason: str = ""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    def wakes(self, reply: Refused | None) -> Wake:
        return Wake.NOBODY if reply else Wake.WORKERS


class Resume(Command[Refused | None], frozen=True):
    """Paused or failed → queued with its checkpoints, its place in the lane, and `attempts` more
    attempts.

    Its open dead letter is marked redriven. `Refused` with the live run's id when a unique slot is
    taken."""

    run: str
    actor: str
    attempts: int = 5

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]

    def wakes(self, reply: Refused | None) -> Wake:
        return Wake.NOBODY if reply else Wake.WORKERS


class Sweep(Command[list[tuple[str, str]]], frozen=True):
    """Return runs whose lease has ended to the queue (`run.worker_lost`), or fail them
    (`run.failed`, dead letter) when their attempts are used up. The answer lists them as (run, new
    state)."""

    limit: int = 500

    def wakes(self, reply: list[tuple[str, str]]) -> Wake:
        return Wake.WORKERS if reply else Wake.NOBODY


class Prune(Command[list[tuple[str, str]]], frozen=True):
    """Delete finished runs with all that belongs to them, `keep` seconds after they finished.
    Failed runs and runs with an open dead letter stay `keep_failed` seconds. The answer lists them
    as (run, tenant)."""

    keep: float
    keep_failed: float
    limit: int = 500


class DefineLane(Command[str], frozen=True):
    """Create a lane or change its head policy. The answer is the stored order: it never changes."""

    name: str
    order: str
    head: str


# --- locks ----------------------------------------------------------------------------------------


class Acquire(Command[Acquired | Held], frozen=True, gc=False):
    """Take a lock, or learn who holds it. Idempotent per token: the holder's token gets the same
    epoch again. Every other acquisition raises the epoch by one."""

    name: str
    token: str
    owner: str
    ttl: float

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("lock", self.name)]

    @property
    def identity(self) -> Hashable:
        return self.name


class RenewLocks(Command[list[tuple[str, str]]], frozen=True):
    """Extend the locks that these (name, token) pairs still hold. The answer lists the lost
    pairs."""

    held: list[tuple[str, str]]
    ttl: float

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("lock", name) for name, _ in self.held]

    @property
    def identity(self) -> Hashable:
        return "renewal"


class ReleaseLock(Command[bool], frozen=True, gc=False):
    """Give a lock back. The answer says whether the token still held it."""

    name: str
    token: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("lock", self.name)]

    @property
    def identity(self) -> Hashable:
        return self.name

    def wakes(self, reply: bool) -> Wake:
        return Wake.WORKERS if reply else Wake.NOBODY


class ForceRelease(Command[bool], frozen=True):
    """End a lock against its holder's will: raises the epoch and writes an audit entry. The answer
    says whether anybody held it."""

    name: str
    actor: str
    reason: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("lock", self.name)]

    def wakes(self, reply: bool) -> Wake:
        return Wake.WORKERS if reply else Wake.NOBODY


# --- dead letters, outbox -------------------------------------------------------------------------


RUN_LETTER: Final = "run:"
"""What the ids of runs' dead letters begin with; the rest is the run's id."""


class Bury(Command[bool], frozen=True):
    """Keep a message that can't become a run. Idempotent per id; the answer says whether it is new.
    Ids that begin with `RUN_LETTER` belong to the dead letters of runs."""

    id: str
    source: str
    reason: str
    body: bytes
    attributes: dict[str, str] = {}
    tenant: str = ""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("letter", self.id)]


class MarkRedriven(Command[bool], frozen=True):
    """Note that a dead letter was sent on its way again. The answer is False when that happened
    before."""

    id: str
    actor: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return _letter_and_run(self.id)


class Discard(Command[bool], frozen=True):
    """Close a dead letter for good. A blocked lane whose head it was goes on. False if it was
    closed before."""

    id: str
    actor: str
    reason: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return _letter_and_run(self.id)

    def wakes(self, reply: bool) -> Wake:
        return Wake.WORKERS if reply else Wake.NOBODY


class ReadOutbox(Command[list[Event]], frozen=True):
    """The next events that no relay has confirmed, in the order they were committed."""

    limit: int = 200


class ConfirmOutbox(Command[None], frozen=True):
    """All events up to this position reached the bus. Never goes back."""

    position: int

    @property
    def subjects(self) -> Sequence[Subject]:
        return []


def _letter_and_run(letter: str) -> Sequence[Subject]:
    """A run's dead letter concerns the run as well."""
    subjects: list[Subject] = [("letter", letter)]
    if letter.startswith(RUN_LETTER):
        subjects.append(("run", letter.removeprefix(RUN_LETTER)))
    return subjects


Reply = Any
"""What `apply` answers to commands of several types: that of each command's `Command[R]`."""
