"""What a decision may look at: facts that a store has loaded, and the store's time.

A store implements `Facts` over what it keeps. Nothing here waits or changes anything."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Claim, Prune
from holdfast.model.ids import time_of
from holdfast.model.lane import Lane
from holdfast.model.run import ErrorInfo, Progress, Run, RunState


class Now(Struct, frozen=True):
    """The store's time when it decides: `wall` is for people and retention, leases, locks and
    delays are measured by `mono`."""

    wall: float
    mono: float


class RunFacts(Struct, array_like=True):
    """A run as it is stored; `error` and `progress` are JSON.

    `lease_until` and `due` are moments of `Now.mono`; what people see of a delay is `available`.
    The last four fields may be large: they are there in what can be claimed, and may be left out
    elsewhere."""

    id: str
    tenant: str
    pipeline: str
    lane: str
    state: RunState
    seq: int = 0
    priority: int = 0
    key: str | None = None
    fingerprint: str = ""
    unique: bool = False
    parent: str | None = None
    inherits: bool = False
    """It began with checkpoints of another run."""
    created: float = 0.0
    labels: str | None = None
    """JSON of `dict[str, str]`; None if there are none. So are the attributes."""
    attributes: str | None = None
    epoch: int = 0
    attempts: int = 0
    attempt_limit: int = 5
    worker: str | None = None
    lease_until: float | None = None
    lease_ttl: float = 0.0
    available: float | None = None
    due: float | None = None
    delay: float = 0.0
    started: float | None = None
    finished: float | None = None
    error: str | None = None
    reason: str | None = None
    holds_lane: bool = False
    """It failed at the head of a lane with policy `block`, and nobody has resumed or discarded it
    yet."""
    events: int = 0
    """The number of its last event."""
    input: str = "null"
    progress: str = "{}"
    result: str | None = None
    result_checksum: str | None = None

    def is_held(self, epoch: int, now: Now) -> bool:
        """The fence: whether the holder of this epoch may still write to the run."""
        return (
            self.state is RunState.RUNNING
            and self.epoch == epoch
            and lasts(self.lease_until, self.lease_ttl, now)
        )

    def is_due(self, now: Now) -> bool:
        """Whether it waits for the end of no delay."""
        return self.due is None or self.due <= now.mono

    @classmethod
    def stored(cls, run: Run, **fields: Any) -> RunFacts:
        """A run as it was seen, with what people do not see."""
        view = {name: getattr(run, name) for name in VIEW if name not in JSON_FIELDS}
        for name in JSON_FIELDS:
            value = getattr(run, name)
            view[name] = msgspec.json.encode(value).decode() if value else None
        return cls(**{**view, **fields})

    def view(self) -> Run:
        """The run as people see it."""
        fields = {name: getattr(self, name) for name in VIEW}
        unreadable: list[str] = []
        for name, (decode, nothing) in _DECODERS.items():
            try:
                fields[name] = decode(fields[name]) if fields[name] else nothing()
            except (msgspec.MsgspecError, ValueError, TypeError):
                fields[name] = nothing()
                unreadable.append(name)
        damage = f"can't be read: {', '.join(unreadable)}" if unreadable else None
        return Run(**fields, damage=damage)


VIEW = tuple(name for name in Run.__struct_fields__ if name != "damage")
_DECODERS: dict[str, tuple[Callable[[str], Any], Callable[[], Any]]] = {
    "error": (msgspec.json.Decoder(ErrorInfo).decode, lambda: None),
    "progress": (msgspec.json.Decoder(Progress).decode, Progress),
    "labels": (msgspec.json.Decoder(dict[str, str]).decode, dict),
    "attributes": (msgspec.json.Decoder(dict[str, str]).decode, dict),
}
JSON_FIELDS = tuple(_DECODERS)


class BrokenRun(RunFacts):
    """A run whose row can't be read, in the place where it is listed. It does nothing by itself, so
    it is shown as paused."""

    damage: str = ""

    @classmethod
    def of(cls, id: str, seq: int, error: Exception) -> BrokenRun:
        damage = f"its row can't be read: {type(error).__name__}: {error}"
        return cls(id, "", "", "", RunState.PAUSED, seq, damage=damage)

    def view(self) -> Run:
        created = time_of(self.id) or 0.0
        return Run(self.id, "", "", "", self.state, self.seq, created=created, damage=self.damage)


UNREADABLE = (msgspec.MsgspecError, struct.error, ValueError, TypeError, LookupError)
"""What a row raises that is not what it was."""


ROUNDING = 0.001
"""Seconds by which a time that was stored and read may differ: SQLite reads 15 digits of it."""


def lasts(until: float | None, ttl: float, now: Now) -> bool:
    """Whether a lease has not ended. One that ends later than it can was granted before the host
    was restarted, or by a clock that has since been set back."""
    return until is not None and now.mono < until <= now.mono + ttl + ROUNDING


class LockFacts(Struct):
    """A lock. Its epoch outlives every holder; `token` is None while nobody holds it."""

    name: str
    epoch: int = 0
    token: str | None = None
    owner: str = ""
    acquired: float | None = None
    lease_until: float | None = None
    lease_ttl: float = 0.0

    def is_held(self, now: Now) -> bool:
        return self.token is not None and lasts(self.lease_until, self.lease_ttl, now)


class RecordFacts(Struct):
    """A record. It expires with its lease; one without lasts until it is deleted."""

    key: str
    value: str
    version: str
    updated: float
    lease_until: float | None = None
    lease_ttl: float = 0.0

    def is_live(self, now: Now) -> bool:
        return self.lease_until is None or lasts(self.lease_until, self.lease_ttl, now)


class WaitingTenant(Struct):
    """A tenant that has runs which may be claimed now, in the order in which they are."""

    tenant: str
    running: int
    """Its running runs of the lane."""
    room: int | None
    """How many more of its runs may run, in all lanes; None: as many as there are."""
    runs: Sequence[RunFacts]


class LetterFacts(Struct):
    """A dead letter, without its body."""

    id: str
    run: str | None = None
    closed: float | None = None


class Facts(Protocol):
    """What is stored. A decision looks only at what its command concerns."""

    def run(self, id: str) -> RunFacts | None: ...

    def run_with_key(self, tenant: str, key: str) -> RunFacts | None: ...

    def slot_holder(self, tenant: str, pipeline: str) -> RunFacts | None:
        """The live run of a unique pipeline, if there is one."""
        ...

    def checkpoint(self, run: str, step: str, key: str) -> Checkpoint | None: ...

    def quarantined(self, run: str, step: str) -> int:
        """How many checkpoints of the step, items included, are in quarantine."""
        ...

    def lane(self, name: str) -> Lane | None:
        """The lane as it was defined; None if nobody has."""
        ...

    def lock(self, name: str) -> LockFacts | None: ...

    def letter(self, id: str) -> LetterFacts | None: ...

    def record(self, key: str) -> RecordFacts | None: ...


class LocalFacts(Facts, Protocol):
    """What the commands of the hot path and searches look at besides: a server has these in its own
    language."""

    def log_lines(self, run: str) -> int: ...

    def waiting(self, claim: Claim, now: Now) -> Sequence[WaitingTenant]:
        """The tenants with runs of a parallel lane that may be claimed now, each with the first
        `claim.limit` of them: at most `EXAMINED`, in the order of their names, beginning behind
        `claim.after` and going on with the first."""
        ...

    def room(self, tenant: str) -> int | None:
        """How many more runs of the tenant may run; None: as many as there are."""
        ...

    def fifo_head(self, lane: str) -> RunFacts | None:
        """The first accepted run of a lane that is queued, whether it waits for a retry or not;
        None while a run of the lane is running or holds it."""
        ...

    def ended_leases(self, limit: int, now: Now) -> Sequence[RunFacts]:
        """Running runs whose lease has ended, the first that ended first."""
        ...

    def expired(self, prune: Prune, now: Now) -> Sequence[RunFacts]:
        """Finished runs that retention lets go, the oldest first, at most `prune.limit`."""
        ...
