"""The exception tree, split by what the caller should do next.

HoldfastError
├── Fix          the call is wrong: change it
│   ├── DefinitionError      a pipeline is declared wrongly
│   ├── InvalidInput         a payload does not match its schema
│   ├── ConfigurationError   a setting, URL or file is wrong
│   ├── UnknownPipeline      nothing of that name is registered
│   ├── NotFound             no such run, dead letter or lock
│   ├── Forbidden            the caller may not do this
│   └── Conflict             it contradicts what is stored (run still live, lock held)
│       └── KeyReused        the idempotency key belongs to other work
├── Transient    try again later, unchanged
│   ├── StoreUnavailable     the store is out of reach: nothing was accepted
│   ├── QuotaExceeded        a tenant has used up a quota: nothing was accepted
│   ├── StillRunning         a run has no result yet
│   └── StepTimeout          a step passed its deadline and was stopped
├── Permanent    trying again can't help
│   ├── Unwritable           no store can hold what it was given
│   ├── Damaged              what is stored was changed, or is not whole any more
│   ├── RunTimeout           a run passed its deadline and was stopped
│   ├── CheckpointsCorrupt   stored results failed validation too often
│   ├── ItemsFailed          too many items of a map failed
│   └── RunFailed            what `run.result()` raises for a failed run
└── Stop         this piece of work is over: clean up and write nothing
    ├── LeaseLost            somebody else may hold the lease now
    ├── RunCancelled         what `run.result()` raises for a cancelled run
    └── Pause                raised by a step to park its run until it is resumed
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Everything holdfast raises on purpose. The message names the cause, the object and the
    remedy."""


class Fix(HoldfastError):
    """The call is wrong and stays wrong until it is changed."""


class DefinitionError(Fix):
    """A pipeline or step is declared wrongly."""


class InvalidInput(Fix):
    """A payload does not match the schema of its pipeline."""


class ConfigurationError(Fix):
    """A setting, URL or file can't be used as it is."""


class UnknownPipeline(Fix):
    """No pipeline of that name is registered here."""


class NotFound(Fix):
    """The store holds no such object (for this tenant)."""


class Forbidden(Fix):
    """The caller may not do this: its tenant is disabled, or its key lacks the scope."""


class Conflict(Fix):
    """The request contradicts what is stored. `run_id` is the run that stands in the way, if there
    is one."""

    def __init__(self, message: str, run_id: str | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id


class KeyReused(Conflict):
    """The idempotency key belongs to a run of another input or pipeline."""


class Transient(HoldfastError):
    """It may work later. `retry_after` is the least number of seconds to wait, if the other side
    said so."""

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = None if retry_after is None else _seconds(retry_after)


LONGEST_PAUSE = 366 * 86_400.0
"""Seconds that another side may ask for."""


def _seconds(retry_after: float) -> float:
    """Also from a Decimal or one of numpy's numbers. Raises InvalidInput."""
    try:
        seconds = float(retry_after)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"retry_after={retry_after!r:.100} is no number of seconds") from None
    if not 0.0 <= seconds <= LONGEST_PAUSE:
        raise InvalidInput(
            f"retry_after={retry_after!r:.100}: an error asks to wait from 0 seconds to a year"
        )
    return seconds


class StoreUnavailable(Transient):
    """The store is out of reach, locked or full: nothing was accepted and nothing runs."""


class StillRunning(Transient):
    """The run has not ended, so it has no result yet."""


class QuotaExceeded(Transient):
    """A tenant has used up a quota: nothing was accepted. `quota` is its name, `limit` what it
    allows; `retry_after` says when it is worth while to try again."""

    def __init__(self, message: str, *, quota: str, limit: int, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.quota = quota
        self.limit = limit


class StepTimeout(Transient):
    """A step passed its deadline and was stopped."""


class Permanent(HoldfastError):
    """Trying again can't help: the run fails and is kept as a dead letter."""


class Unwritable(Permanent):
    """A command that no store can write, whatever is tried: it was left out, alone, and nothing
    else was."""


class Damaged(Permanent):
    """What is stored does not match its digest: it was changed, or is not whole any more."""


class RunTimeout(Permanent):
    """A run passed its deadline and was stopped."""


class CheckpointsCorrupt(Permanent):
    """Stored results of one step failed validation too often."""


class ItemsFailed(Permanent):
    """More items of a map failed than the step tolerates."""


class RunFailed(Permanent):
    """The run ended as failed."""

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class Stop(HoldfastError):
    """This piece of work is over: clean up, write nothing."""


class LeaseLost(Stop):
    """The lease is gone or no longer trusted; another worker may already go on with the run."""


class RunCancelled(Stop):
    """The run was cancelled."""


class Pause(Stop):
    """Raise it in a step to park the run, checkpoints kept, until somebody resumes it."""
