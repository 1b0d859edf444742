"""What may be chosen about the work of a process. Every default stands here, and only here."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast.errors import ConfigurationError
from holdfast.model.duration import check_seconds
from holdfast.model.leadership import Leaders

DAY = 86_400.0


class WorkerOptions(Struct, frozen=True):
    """Flow control and timing of one worker."""

    concurrency: int = 64
    """Runs in flight at once."""
    max_bytes: int = 500 * 1024 * 1024
    """Sum of the inputs' sizes in flight."""
    batch: int = 128
    """Runs claimed at once, and never more than half of `concurrency`."""
    poll: float = 1.0
    """How often an idle worker looks for runs when nothing wakes it, in seconds."""
    progress: float = 0.5
    """How often unfinished runs show their progress, in seconds."""
    grace: float = 5.0
    """How long steps under way may go on after the worker was told to stop, in seconds."""
    leader: Leaders = Leaders()
    """How it holds the leadership of its fifo lanes."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_bytes", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} is {value!r:.100}: give a whole number from 1 on")
        check_seconds(self, "poll", "progress", least=0.001)
        check_seconds(self, "grace")


class PipelineOptions(Struct, frozen=True, omit_defaults=True):
    """What settings may change about a pipeline; None leaves it as its code says."""

    timeout: float | None = None
    """Seconds that an attempt may take."""
    max_attempts: int | None = None
    backoff: float | None = None
    """Seconds before the first retry of a step; they double from then on."""
    max_validation_failures: int | None = None
    """How many stored results of one step may turn out bad before the run fails."""

    def over(self, other: PipelineOptions) -> PipelineOptions:
        """These options, and the others' where these say nothing."""
        changed = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **changed)


class Retention(Struct, frozen=True):
    """How long ended runs stay, in seconds."""

    finished: float = 30 * DAY
    """Succeeded and cancelled runs."""
    failed: float = 90 * DAY
    """Failed runs, and runs with an open dead letter."""
    every: float = 3600.0
    """How often old runs are looked for."""

    def __post_init__(self) -> None:
        check_seconds(self, "finished", "failed")
        check_seconds(self, "every", least=0.001)
