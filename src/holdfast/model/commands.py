"""The commands a store applies, and what it answers.

A command is a value. Each is atomic and fenced on its own; a store applies many in one round trip.
Commands carry no time: the store stamps what it writes with its own clock.

**The fence.** Commands with `run` and `epoch` are accepted only while that run is `running`, its
epoch is the given one and its lease has not ended by the store's clock. Otherwise nothing at all is
written and the answer is `STALE`.

**History.** Whatever changes a run's state writes its event in the same transaction, numbered one
higher than the run's last event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from holdfast.model.checkpoint import Checkpoint


class Stale(Struct, frozen=True):
    """The fence refused the command: the writer no longer holds the lease."""


STALE: Final = Stale()


class Refused(Struct, frozen=True):
    """The run is in a state that does not allow the command. `state` is None when there is no such
    run."""

    state: str | None
    run: str | None = None


# --- intake ---------------------------------------------------------------------------------------


class Submit(Struct, frozen=True, array_like=True, gc=False):
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


class Submitted(Struct, frozen=True, gc=False):
    run: str
    created: bool
    state: str
    conflict: bool = False


# --- execution ------------------------------------------------------------------------------------


class Claim(Struct, frozen=True):
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


class Claimed(Struct, frozen=True, array_like=True, gc=False):
    """A leased run: what the worker needs to go on with it."""

    run: str
    tenant: str
    pipeline: str
    lane: str
    epoch: int
    attempt: int
    attempt_limit: int
    input: str
    progress: str
    """JSON of `Progress`."""
    resumed: bool
    """Whether checkpoints may exist: it was claimed before, or takes over results of another
    run."""


class Renew(Struct, frozen=True):
    """Extend the leases that are still held to now + ttl; never shortens one. The answer lists the
    lost pairs."""

    held: list[tuple[str, int]]
    ttl: float


class SaveCheckpoint(Struct, frozen=True, array_like=True, gc=False):
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


class Quarantine(Struct, frozen=True):
    """Take a bad checkpoint out of use and keep it aside. Fenced. The answer is how many of this
    step's checkpoints (items included) were quarantined in this run so far."""

    run: str
    epoch: int
    step: str
    key: str
    reason: str


class SaveProgress(Struct, frozen=True, array_like=True, gc=False):
    """Replace what people see of the unfinished part (JSON of `Progress`). Fenced. No event."""

    run: str
    epoch: int
    progress: str


class LogLine(Struct, frozen=True, array_like=True, gc=False):
    """Append a line to the run's log. Fenced. No event."""

    run: str
    epoch: int
    level: str
    step: str
    message: str
    fields: str = "{}"


Outcome = Literal["succeeded", "failed", "paused", "retry", "handover"]


class Settle(Struct, frozen=True, array_like=True, gc=False):
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


# --- operations -----------------------------------------------------------------------------------


class Cancel(Struct, frozen=True):
    """Live → cancelled, at once, raising the epoch. `Refused` in any other state."""

    run: str
    actor: str
    reason: str = ""


class PauseRun(Struct, frozen=True):
    """Queued or running → paused, at once, raising the epoch; the attempt does not count."""

    run: str
    actor: str
    reason: str = ""


class Resume(Struct, frozen=True):
    """Paused or failed → queued with its checkpoints, its place in the lane, and `attempts` more
    attempts.

    Its open dead letter is marked redriven. `Refused` with the live run's id when a unique slot is
    taken."""

    run: str
    actor: str
    attempts: int = 5


class Sweep(Struct, frozen=True):
    """Return runs whose lease has ended to the queue (`run.worker_lost`), or fail them
    (`run.failed`, dead letter) when their attempts are used up. The answer lists them as (run, new
    state)."""

    limit: int = 500


class Prune(Struct, frozen=True):
    """Delete finished runs with all that belongs to them, `keep` seconds after they finished.
    Failed runs and runs with an open dead letter stay `keep_failed` seconds. The answer lists them
    as (run, tenant)."""

    keep: float
    keep_failed: float
    limit: int = 500


class DefineLane(Struct, frozen=True):
    """Create a lane or change its head policy. The answer is the stored order: it never changes."""

    name: str
    order: str
    head: str


# --- locks ----------------------------------------------------------------------------------------


class Acquire(Struct, frozen=True, gc=False):
    """Take a lock, or learn who holds it. Idempotent per token: the holder's token gets the same
    epoch again. Every other acquisition raises the epoch by one."""

    name: str
    token: str
    owner: str
    ttl: float


class Acquired(Struct, frozen=True, gc=False):
    epoch: int


class Held(Struct, frozen=True):
    owner: str
    remaining: float
    epoch: int


class RenewLocks(Struct, frozen=True):
    """Extend the locks that these (name, token) pairs still hold. The answer lists the lost
    pairs."""

    held: list[tuple[str, str]]
    ttl: float


class ReleaseLock(Struct, frozen=True, gc=False):
    """Give a lock back. The answer says whether the token still held it."""

    name: str
    token: str


class ForceRelease(Struct, frozen=True):
    """End a lock against its holder's will: raises the epoch and writes an audit entry. The answer
    says whether anybody held it."""

    name: str
    actor: str
    reason: str


# --- dead letters, outbox -------------------------------------------------------------------------


class Bury(Struct, frozen=True):
    """Keep a message that can't become a run. Idempotent per id; the answer says whether it is new.
    Ids that begin with `run:` belong to the dead letters of runs."""

    id: str
    source: str
    reason: str
    body: bytes
    attributes: dict[str, str] = {}
    tenant: str = ""


class MarkRedriven(Struct, frozen=True):
    """Note that a dead letter was sent on its way again. The answer is False when that happened
    before."""

    id: str
    actor: str


class Discard(Struct, frozen=True):
    """Close a dead letter for good. A blocked lane whose head it was goes on. False if it was
    closed before."""

    id: str
    actor: str
    reason: str


class ReadOutbox(Struct, frozen=True):
    """The next events that no relay has confirmed, in the order they were committed."""

    limit: int = 200


class ConfirmOutbox(Struct, frozen=True):
    """All events up to this position reached the bus. Never goes back."""

    position: int


Command = (
    Submit
    | Claim
    | Renew
    | SaveCheckpoint
    | Quarantine
    | SaveProgress
    | LogLine
    | Settle
    | Cancel
    | PauseRun
    | Resume
    | Sweep
    | Prune
    | DefineLane
    | Acquire
    | RenewLocks
    | ReleaseLock
    | ForceRelease
    | Bury
    | MarkRedriven
    | Discard
    | ReadOutbox
    | ConfirmOutbox
)

Reply = Any
"""What `apply` answers: the type named in the command's docstring; None where it names none."""
