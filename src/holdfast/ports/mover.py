"""Moving all that a store holds to another place: it is read in pages and adopted unchanged, while
both stores refuse other writes.

A store that takes part in a move carries a `Mark`. While it does, `Store.open` refuses it with a
`ConfigurationError` and every command that would write is refused with `StoreUnavailable`, inside
the store, also for those who opened it long before. Only movers write to it.

    leaving    its runs are being moved to another place
    moved      they were, and the other place was compared with it
    arriving   it is being filled from another place

What is moved keeps its order and its numbers: runs keep the order of acceptance and their epochs,
events their numbers and their positions in the outbox. Leases are not moved: they end when the
store is held."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from holdfast.errors import ConfigurationError
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.machine.facts import RunFacts
from holdfast.ports.records import Record
from holdfast.ports.store import DeadLetter, StoredLog

Kind = Literal["lanes", "tenants", "locks", "records", "letters", "audit", "runs"]

KINDS: tuple[Kind, ...] = ("lanes", "tenants", "locks", "records", "letters", "audit", "runs")
"""In the order in which they are moved: a run needs its lane."""

PAGE_BYTES = 8 * 1024 * 1024
"""A page of runs ends with the one that makes it larger than this, roughly: what a mover holds in
memory at once."""


class MoveMark(Struct, frozen=True):
    """Why a store is held. `other` is the other place, fit to be shown."""

    state: Literal["leaving", "moved", "arriving"]
    move: str
    other: str
    at: float

    @property
    def meaning(self) -> str:
        """For those who wanted to work with the store: what happened to it, and what to do."""
        when = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        again = "start the same `holdfast promote` again to finish it if it was interrupted"
        match self.state:
            case "moved":
                return (
                    f"holds nothing to work on: its runs were moved to {self.other} on {when}; "
                    "use that store"
                )
            case "leaving":
                return (
                    f"is held still: its runs are being moved to {self.other} since {when}; {again}"
                )
            case "arriving":
                return (
                    f"is not complete: it is being filled from {self.other} since {when}; {again}"
                )


def refuse_marked(mark: MoveMark | None, store: str) -> None:
    """What every store calls when it is opened."""
    if mark is not None:
        raise ConfigurationError(f"{store} {mark.meaning}")


class Numbers(Struct, frozen=True):
    """Where a store has come to: the last run accepted, the last event written."""

    seq: int = 0
    position: int = 0


class Holder(Struct, frozen=True):
    """Who has a lease on what: `run 06f3…` or `lock lane:orders`."""

    subject: str
    owner: str


class MoveState(Struct, frozen=True):
    """How a store stands with regard to moves. `empty` means that it has no runs, dead letters or
    audit entries."""

    mark: MoveMark | None
    empty: bool
    runs: int
    numbers: Numbers
    last_run: str | None
    """The id of the newest run that is there."""
    holders: list[Holder]


class LockEpoch(Struct, frozen=True):
    """A lock's name and the last epoch that was given out for it."""

    name: str
    epoch: int


class TenantLimit(Struct, frozen=True):
    """How many runs of a tenant may run at once."""

    tenant: str
    running: int


class ExpiringRecord(Struct, frozen=True):
    """A record, and for how many seconds more it is there; None: until it is deleted."""

    record: Record
    remaining: float | None = None


class LetterRecord(Struct, frozen=True):
    """The dead letter of a message, and its event."""

    letter: DeadLetter
    event: Event


class AuditRecord(Struct, frozen=True):
    """An audit entry; the first of a store is number 1."""

    number: int
    at: float
    actor: str
    action: str
    target: str
    reason: str


class Quarantined(Struct, frozen=True):
    """A checkpoint that was taken out of use."""

    step: str
    key: str
    reason: str
    value: str | None
    at: float


class RunRecord(Struct):
    """A run with all that belongs to it. Its lease is not moved, because its times are not those of
    another store; for the same reason the end of a delay is given as `wait`."""

    run: RunFacts
    wait: float = 0.0
    """Seconds until a delayed run may be claimed."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    quarantine: list[Quarantined] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    logs: list[StoredLog] = field(default_factory=list)
    letter: DeadLetter | None = None

    @property
    def size(self) -> int:
        """About how many bytes it is."""
        values = sum(len(saved.value) + len(saved.record) for saved in self.checkpoints)
        facts = sum(len(event.data) for event in self.history) + sum(
            len(line.message) for line in self.logs
        )
        return len(self.run.input) + len(self.run.result or "") + values + facts


class Page(Struct, frozen=True):
    """Some records, and where to go on. `after` is None when there are no more."""

    records: list[Any]
    after: str | None


class Mover(Protocol):
    """Reads and fills one store, past everybody else. Its commands are for one task at a time.

    What is moved are `Lane` (lanes), `TenantLimit` (tenants), `LockEpoch` (locks), `ExpiringRecord`
    (records), `LetterRecord` (letters: those of messages), `AuditRecord` (audit) and `RunRecord`
    (runs, with their dead letters).

    Who retries: the caller. Everything may be repeated. Errors: `StoreUnavailable`, and
    `ConfigurationError` from `exists` and `open` when the place can't be used as configured."""

    async def exists(self) -> bool:
        """Whether there is a store at this place already. Reaches the place and creates nothing."""
        ...

    async def open(self) -> None:
        """Connect, and create or migrate the store if need be, whatever mark it carries."""
        ...

    async def close(self) -> None: ...

    async def move_state(self) -> MoveState: ...

    async def hold(self, mark: MoveMark) -> None:
        """Set the mark. In the same transaction all leases and locks end: running runs go back to
        the queue, or fail, as when their worker has vanished."""
        ...

    async def release(self) -> None:
        """Take the mark away: from now on the store can be opened and worked with."""
        ...

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        """The next records. Runs come in the order of acceptance; their `after` is the last one's
        id."""
        ...

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        """Take records in, as they are and durably. Those that are there already stay as they are;
        of a lock the higher epoch counts. Runs have to come in the order of acceptance, each with
        the position of its first event as its number (`seq`): a store may keep the two as one."""
        ...

    async def continue_from(self, numbers: Numbers) -> None:
        """All records are there: give later runs and events higher numbers.

        Runs were adopted with positions as their numbers, so a later run's number is above `seq`
        and `position`."""
        ...
