"""The store: the one truth about runs, leases, checkpoints, lanes, locks, events and dead
letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from holdfast.errors import InvalidInput
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Command, R, Wake
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.limits import is_text
from holdfast.model.machine.facts import RunFacts
from holdfast.model.run import Run
from holdfast.ports.records import RecordPage


class RunFilter(Struct, frozen=True, omit_defaults=True):
    """Which runs to list. Everything given must match; `id_prefix` finds runs by the start of their
    id."""

    tenant: str | None = None
    pipeline: str | None = None
    state: str | None = None
    lane: str | None = None
    id_prefix: str | None = None
    key: str | None = None
    labels: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Raises InvalidInput for what no run can have: a text from a terminal may be any bytes."""
        texts = (self.tenant, self.pipeline, self.state, self.lane, self.id_prefix, self.key)
        for text in (*texts, *self.labels, *self.labels.values()):
            if text is not None and not is_text(text):
                raise InvalidInput(f"runs are looked for by texts; {text!r:.80} is none")

    def matches(self, run: RunFacts) -> bool:
        return (
            self.tenant in (None, run.tenant)
            and self.pipeline in (None, run.pipeline)
            and self.state in (None, run.state)
            and self.lane in (None, run.lane)
            and self.key in (None, run.key)
            and run.id.startswith(self.id_prefix or "")
            and (not self.labels or self.labels.items() <= run.view().labels.items())
        )


_decode_attributes = msgspec.json.Decoder(dict[str, str]).decode


def letter_attributes(stored: str | bytes) -> dict[str, str]:
    """Of a dead letter. Those that can't be read any more cost only themselves: the letter is
    listed, and says so."""
    try:
        return _decode_attributes(stored)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return {"damaged": "its attributes can't be read any more"}


class DeadLetter(Struct, frozen=True):
    """A message or run that can't go on. `run` is set when it is a run; then `body` is its stored
    input."""

    id: str
    source: str
    reason: str
    body: bytes
    attributes: dict[str, str]
    tenant: str
    created: float
    run: str | None = None
    closed: float | None = None
    resolution: str | None = None


class LaneInfo(Struct, frozen=True):
    """A lane and what is in it. `blocked_by` is the failed head of a lane with policy `block`,
    `delayed` how many of the queued runs wait for the end of a delay, `oldest` when the first of
    the others was accepted."""

    name: str
    order: str
    head: str
    queued: int
    running: int
    leader: str | None = None
    term: int = 0
    blocked_by: str | None = None
    delayed: int = 0
    oldest: float | None = None


class StoredLog(Struct, frozen=True):
    at: float
    level: str
    step: str
    message: str
    fields: str


class Audit(Struct, frozen=True):
    at: float
    actor: str
    action: str
    target: str
    reason: str


class Features(Struct, frozen=True):
    """What an adapter declares about itself; contract suites and documentation follow it."""

    name: str
    durable: bool
    """What was answered survives the death of every process."""
    shared: bool
    """Several processes may open it at once."""
    batches_in_flight: int = 1
    """How many `apply` calls are worth having under way at once."""


class Store(Protocol):
    """A small set of atomic commands, applied in batches, and the reads that people need.

    Who may call: any task of any event loop in any thread; calls may overlap.
    How long a call may block: until the server answers or the adapter's timeout passes; the event
    loop never. Who retries: the caller, never the adapter. All commands may be repeated after a
    lost answer: they are idempotent by id, token or fence, but for `Claim`, whose lost runs come
    back when their lease ends. Errors: `StoreUnavailable` when it can't be reached, is locked or
    full (nothing of the batch was written, or it is unknown whether it was); `ConfigurationError`
    from `open` when it can't be used as configured. Reads see every command that was answered
    before they began."""

    features: Features

    async def open(self) -> None:
        """Connect, migrate the schema, refuse what is unsafe. Idempotent."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go. Idempotent."""
        ...

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        """Apply the commands durably and answer each, in order.

        One command's refusal is its own answer and no exception; that to a command which no store
        can write is an `Unwritable`, and the others are applied. The batch is one round trip and,
        where the adapter has transactions, one transaction: either all commands were applied or the
        call raises. Commands on one run, lane or lock take effect in the order given. Others may be
        applied in any order, also when they compete for one idempotency key or unique slot: who
        needs an order waits for the answer."""
        ...

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        """The number of the newest change, as soon as it is above `since`, or after `timeout`
        seconds.

        Begin with `since=0`, pass on what it answered. A notification may come for nothing, none
        between two waits is lost, and those of other processes arrive within 100 ms. It need not
        answer for changes that wake fewer than `wake`: with `Wake.WORKERS` not for runs that
        succeed, which leave nothing to be claimed but in a fifo lane; with `Wake.HOLDERS` only
        when a lease may have been taken from its holder."""
        ...

    async def run(self, run: str) -> Run | None: ...

    async def over(self, runs: Sequence[str]) -> list[Run]:
        """Those of the given runs that are succeeded, failed or cancelled."""
        ...

    async def unique_runs(self) -> list[Run]:
        """The live runs of unique pipelines: each keeps the next one of its tenant waiting."""
        ...

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        """Newest first. `before` is the `seq` of the last run of the page before."""
        ...

    async def count(self, where: RunFilter) -> dict[str, int]:
        """Number of runs by state."""
        ...

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        """All checkpoints of a run (or of one step), items included."""
        ...

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        """What was taken out of use: (step, key, reason), oldest first."""
        ...

    async def history(self, run: str) -> list[Event]: ...

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]: ...

    async def dead_letters(
        self,
        *,
        tenant: str | None = None,
        open_only: bool = True,
        limit: int = 100,
        behind: tuple[float, str] | None = None,
    ) -> list[DeadLetter]:
        """The newest first, with their bytes. `behind` is when the last one of the page before was
        created, and its id: it may be gone or closed meanwhile."""
        ...

    async def dead_letter(self, id: str) -> DeadLetter | None: ...

    async def locks(self) -> list[LockInfo]:
        """The locks that are held now."""
        ...

    async def lanes(self) -> list[LaneInfo]: ...

    async def outbox(self, after: int, limit: int = 200) -> list[Event]:
        """Committed events behind a position, in the order of their positions, which is the order
        of commit: nothing is committed later at or below a position that was answered."""
        ...

    async def record(self, key: str) -> RecordPage:
        """A record, if it is there: see `ports/records.py`."""
        ...

    async def records(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        """The records whose keys begin with a prefix, behind `after`, in the order of keys."""
        ...

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        """Forced releases and other interventions, newest first."""
        ...
