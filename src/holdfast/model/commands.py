"""The commands a store applies, and what it answers.

A command is a value. Each is atomic and fenced on its own; a store applies many in one round trip.
Commands carry no time: the store stamps what it writes with its own clock. What a command does is
written in `model/machine`; here stands what it carries, and what everybody has to know about it:
the type of its reply (`Command[R]`), what it concerns, and whom it wakes.

**The fence.** A `FencedCommand` is accepted only while its run is `running`, the run's epoch is the
given one and its lease has not ended by the store's clock. Otherwise nothing at all is written and
the answer is `STALE`.

**History.** Whatever changes a run's state writes its event in the same transaction, numbered one
higher than the run's last event."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import Final, Generic, Literal, TypeVar

from msgspec import Struct

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.replies import STALE as STALE
from holdfast.model.replies import (
    Acquired,
    Changed,
    Claimed,
    Held,
    Refused,
    Stale,
    Stored,
    Submitted,
)

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
"""The type of a command's reply. Covariant: commands of several types, together, are commands whose
reply is of one of their replies' types."""


class Wake(IntEnum):
    """Whom a command wakes."""

    NOBODY = 0
    WAITERS = 1
    """Those who wait for a run to end, or for events to send."""
    WORKERS = 2
    """Those who look for something to claim, or for a lock; and the waiters."""
    HOLDERS = 3
    """Those who hold a lease that may just have been taken from them; and everybody else."""


Subject = tuple[Literal["run", "lock", "letter", "tenant", "record"], str]


class Command(Struct, Generic[R_co], frozen=True):
    """Something that a store does, and answers with an `R`: `Command[R]`."""

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

    @property
    def wake(self) -> Wake:
        """Whom it wakes if it takes effect."""
        return Wake.NOBODY

    def wakes(self, reply: object) -> Wake:
        """Whom it wakes, now that this is the reply."""
        is_refused = reply is False or reply == [] or isinstance(reply, Stale | Refused)
        return Wake.NOBODY if is_refused else self.wake


class RunCommand(Command[R_co], Generic[R_co], frozen=True):
    """About one run."""

    run: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.run)]


class FencedCommand(RunCommand[R_co], Generic[R_co], frozen=True):
    """Of the worker that leases the run under this epoch: see "The fence" above."""

    epoch: int


class LockCommand(Command[R_co], Generic[R_co], frozen=True):
    """About one lock."""

    name: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("lock", self.name)]


class RecordCommand(Command[R_co], Generic[R_co], frozen=True):
    """About one record."""

    key: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("record", self.key)]


MAX_LABELS: Final = 16
"""Labels of one run."""


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
    labels: dict[str, str] = {}
    """What it can be found by: up to `MAX_LABELS` small strings that never change."""
    attributes: dict[str, str] = {}
    """What came with the request, such as a message's attributes: kept, and not searched."""

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("run", self.id)]

    @property
    def identity(self) -> Hashable:
        return "unique" if self.unique else None

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


# --- execution ------------------------------------------------------------------------------------


class Claim(Command[list[Claimed]], frozen=True):
    """Lease up to `limit` queued runs of a lane. Only the named pipelines are claimed.

    Tenants take turns: in each round every tenant that has runs waiting is given one, those with
    the fewest running runs of the lane first, then by name, beginning behind `after`: the tenant
    that was served last. Inside a tenant priority decides, then the order of acceptance. So each of
    T waiting tenants is given ⌊limit / T⌋ runs at least, or all it has. A tenant at its limit of
    running runs (`LimitTenant`) does not wait. At most `EXAMINED` tenants are looked at, and more
    than `EXAMINED` runs are never claimed at once.

    Each claim raises the run's epoch and attempts by one and writes `run.started`. The sum of the
    inputs' sizes stays below `max_bytes`, but one run is always allowed.

    In a fifo lane `token` and `term` must be those of the current holder of the lock `lane:<name>`,
    and nothing is claimed while a run of the lane is running or holds it (head policy `block`);
    then only the head is considered: the first accepted run that is queued. If that waits for a
    retry, its pipeline is not named or its tenant is at its limit, the answer is empty."""

    worker: str
    lane: str
    pipelines: list[str]
    limit: int
    ttl: float
    max_bytes: int = 1 << 40
    token: str | None = None
    term: int = 0
    after: str = ""


EXAMINED: Final = 1000
"""Tenants that one claim looks at, and the most runs that it takes."""


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


class SaveCheckpoint(FencedCommand[Stale | None], frozen=True, array_like=True, gc=False):
    """Store the result of a step or item. A step (`key == ""`) also writes `step.completed`
    or `step.skipped`, with `record` as its data. Repeating it replaces the value and changes
    nothing else."""

    step: str
    key: str
    value: str
    checksum: str
    schema: str
    fingerprint: str
    record: str
    skipped: bool = False

    @property
    def identity(self) -> Hashable:
        return (self.run, self.step, self.key)


class Quarantine(FencedCommand[int | Stale], frozen=True):
    """Take a bad checkpoint out of use and keep it aside. The answer is how many of this
    step's checkpoints (items included) were quarantined in this run so far."""

    step: str
    key: str
    reason: str


class SaveProgress(FencedCommand[Stale | None], frozen=True, array_like=True, gc=False):
    """Replace what people see of the unfinished part (JSON of `Progress`). No event."""

    progress: str

    @property
    def identity(self) -> Hashable:
        return self.run


class LogLine(FencedCommand[Stale | None], frozen=True, array_like=True, gc=False):
    """Append a line to the run's log. No event."""

    level: str
    step: str
    message: str
    fields: str = "{}"


Outcome = Literal["succeeded", "failed", "paused", "retry", "handover"]

_AFTER: Final[dict[Outcome, Wake]] = {
    "succeeded": Wake.WAITERS,  # it leaves nothing to be claimed, but in a fifo lane
    "failed": Wake.WORKERS,
    "paused": Wake.WORKERS,
    "retry": Wake.WORKERS,
    "handover": Wake.WORKERS,
}


class Settle(FencedCommand[Stale | None], frozen=True, array_like=True, gc=False):
    """End an attempt: outcome, last checkpoint, event and the end of the lease in one
    transaction.

    `succeeded` → succeeded with `result`; `failed` → failed with `error`, and one dead letter
    unless the run's fifo lane says `skip`; `paused` → paused with `reason`; `retry` → queued,
    claimable after `delay`; `handover` → queued at once. After a hand-over, a pause, or a
    `deferred` retry (which a step asked for and counts itself) the attempt does not count.

    `error` is JSON of `ErrorInfo`, `progress` JSON of `Progress`. `last` is the checkpoint of the
    final step."""

    outcome: Outcome
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    delay: float = 0.0
    progress: str = "{}"
    last: SaveCheckpoint | None = None
    deferred: bool = False
    execution_ms: int = 0
    """How long the attempt took, by the worker's monotonic clock."""
    checksum: str | None = None
    """What the result, as it is read back, must hash to."""

    @property
    def identity(self) -> Hashable:
        return self.run

    @property
    def wake(self) -> Wake:
        return _AFTER[self.outcome]


# --- operations -----------------------------------------------------------------------------------


class Cancel(RunCommand[Refused | None], frozen=True):
    """Live → cancelled, at once, raising the epoch. `Refused` in any other state."""

    actor: str
    reason: str = ""

    @property
    def wake(self) -> Wake:
        return Wake.HOLDERS


class PauseRun(RunCommand[Refused | None], frozen=True):
    """Queued or running → paused, at once, raising the epoch; the attempt does not count."""

    actor: str
    reason: str = ""

    @property
    def wake(self) -> Wake:
        return Wake.HOLDERS


class Resume(RunCommand[Refused | None], frozen=True):
    """Paused or failed → queued with its checkpoints, its place in the lane, and `attempts` more
    attempts.

    Its open dead letter is marked redriven. `Refused` with the live run's id when a unique slot is
    taken."""

    actor: str
    attempts: int = 5
    message: str | None = None
    """The id of the message that asked for it, if one did."""
    epoch: int | None = None
    """Only if nobody has worked on the run since it had this epoch."""

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


class Sweep(Command[list[tuple[str, str]]], frozen=True):
    """Return runs whose lease has ended to the queue (`run.worker_lost`), or fail them
    (`run.failed`, dead letter) when their attempts are used up. The answer lists them as (run, new
    state)."""

    limit: int = 500

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


class Prune(Command[list[tuple[str, str]]], frozen=True):
    """Delete finished runs with all that belongs to them, `keep` seconds after they finished.
    Failed runs stay `keep_failed` seconds. The answer lists them as (run, tenant).

    `sent` is the position up to which all projections have sent events, None if there is none: runs
    with later events stay."""

    keep: float
    keep_failed: float
    limit: int = 500
    sent: int | None = None


class DefineLane(Command[str], frozen=True):
    """Create a lane or change its head policy. The answer is the stored order: it never changes."""

    name: str
    order: str
    head: str


class LimitTenant(Command[None], frozen=True):
    """Let at most so many runs of a tenant be running at once; None: as many as there are."""

    tenant: str
    running: int | None
    actor: str

    @property
    def subjects(self) -> Sequence[Subject]:
        return [("tenant", self.tenant)]

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


# --- locks ----------------------------------------------------------------------------------------


class Acquire(LockCommand[Acquired | Held], frozen=True, gc=False):
    """Take a lock, or learn who holds it. Idempotent per token: the holder's token gets the same
    epoch again. Every other acquisition raises the epoch by one."""

    token: str
    owner: str
    ttl: float

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


class ReleaseLock(LockCommand[bool], frozen=True, gc=False):
    """Give a lock back. The answer says whether the token still held it."""

    token: str

    @property
    def identity(self) -> Hashable:
        return self.name

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


class ForceRelease(LockCommand[bool], frozen=True):
    """End a lock against its holder's will: raises the epoch and writes an audit entry. The answer
    says whether anybody held it."""

    actor: str
    reason: str

    @property
    def wake(self) -> Wake:
        return Wake.HOLDERS


# --- dead letters -------------------------------------------------------------------------------


RUN_LETTER: Final = "run:"
"""What the ids of runs' dead letters begin with; the rest is the run's id."""


class Bury(Command[bool], frozen=True):
    """Keep a message that can't become a run, and write `message.dead_lettered` to the outbox.
    Idempotent per id; the answer says whether it is new.
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

    @property
    def wake(self) -> Wake:
        return Wake.WAITERS


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

    @property
    def wake(self) -> Wake:
        return Wake.WORKERS


# --- records --------------------------------------------------------------------------------------


class PutRecord(RecordCommand[Stored | Changed], frozen=True):
    """Write a record, if its version is `expected` (None: if there is none). Idempotent per
    `version`, the new one: it must be one that nobody uses twice. With a `ttl` it is gone so many
    seconds later, as if it had been deleted."""

    value: str
    version: str
    expected: str | None = None
    ttl: float | None = None


class DeleteRecord(RecordCommand[bool], frozen=True):
    """Delete a record, if its version is `expected`. The answer says whether it was."""

    expected: str


def _letter_and_run(letter: str) -> Sequence[Subject]:
    """A run's dead letter concerns the run as well."""
    subjects: list[Subject] = [("letter", letter)]
    if letter.startswith(RUN_LETTER):
        subjects.append(("run", letter.removeprefix(RUN_LETTER)))
    return subjects
