"""A run and the only ways its state may change.

    queued → running → succeeded
               │  ├──→ failed      (resume → queued)
               │  ├──→ cancelled
               │  └──→ queued      worker gone, transient error, hand-over
               └─────→ paused      (resume → queued)

`succeeded` and `cancelled` never change. Cancelling and pausing are possible from every live state;
both raise the epoch, so that whoever still works on the run can write nothing more."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from holdfast.model.usage import Usage


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """Something is still going to happen by itself or after a resume."""
        return self in LIVE

    @property
    def final(self) -> bool:
        """It never changes again."""
        return self in (RunState.SUCCEEDED, RunState.CANCELLED)


LIVE = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
FINISHED = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)

TRANSITIONS: dict[RunState, tuple[RunState, ...]] = {
    RunState.QUEUED: (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED),
    RunState.RUNNING: (
        RunState.QUEUED,
        RunState.PAUSED,
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.CANCELLED,
    ),
    RunState.PAUSED: (RunState.QUEUED, RunState.CANCELLED),
    RunState.FAILED: (RunState.QUEUED,),
    RunState.SUCCEEDED: (),
    RunState.CANCELLED: (),
}


class ErrorInfo(Struct, frozen=True, omit_defaults=True):
    """Why something failed, fit to be stored: of bounded length, and without secrets."""

    name: str
    message: str
    step: str | None = None
    key: str | None = None
    traceback: str | None = None
    """Where in the user's code it happened; left out when that is not known."""

    def __str__(self) -> str:
        where = f"{self.step}[{self.key}]" if self.key else self.step
        return f"{where}: {self.name}: {self.message}" if where else f"{self.name}: {self.message}"


class StepStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class StepRecord(Struct, omit_defaults=True):
    """What is known about one step of a run: the analytics that people look at.

    `usage` includes the step's items and its failed attempts; `epoch` is the attempt that produced
    it."""

    step: str
    status: StepStatus
    started: float | None = None
    finished: float | None = None
    duration: float | None = None
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)
    error: ErrorInfo | None = None
    done: int | None = None
    total: int | None = None
    failed_items: int = 0
    epoch: int = 0
    key: str | None = None
    """The key of an item, where it is too long to be stored as the key itself."""
    source: str | None = None
    """Of an item that others stream: the fingerprint of the step that made it."""
    items: str | None = None
    """Of a step whose items others stream: a digest of these items."""

    @property
    def took(self) -> float | None:
        """Measured where the step completed; by the calendar where it failed."""
        if self.duration is None and self.started and self.finished:
            return max(0.0, self.finished - self.started)
        return self.duration


class Progress(Struct, omit_defaults=True):
    """The unfinished part of a run, as its worker last saw it: shown to people, and carried over a
    retry.

    `wasted` is what vanished attempts consumed without leaving a checkpoint.
    """

    steps: dict[str, StepRecord] = field(default_factory=dict)
    wasted: Usage = field(default_factory=Usage)


class Run(Struct, omit_defaults=True):
    """A run as the store knows it. Times are seconds since the epoch; `input` and `result` are
    stored text."""

    id: str
    tenant: str
    pipeline: str
    lane: str
    state: RunState
    seq: int
    priority: int = 0
    key: str | None = None
    fingerprint: str = ""
    parent: str | None = None
    epoch: int = 0
    attempts: int = 0
    attempt_limit: int = 5
    worker: str | None = None
    created: float = 0.0
    available: float | None = None
    started: float | None = None
    finished: float | None = None
    input: str = "null"
    result: str | None = None
    result_checksum: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    progress: Progress = field(default_factory=Progress)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    """What came with the request, such as a message's attributes."""
    events: int = 0
    """The number of its last event."""
    damage: str | None = None
    """What of it is stored and can't be read any more. The rest is as it is."""
