"""Exit codes, a public contract, and which error ends with which."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from holdfast import errors

if TYPE_CHECKING:
    from holdfast.model.run import Run
    from holdfast.services.views import RunSummary


class ExitCode(IntEnum):
    OK = 0
    OTHER = 1
    """Failed for another reason: the store is out of reach, or a bug."""
    USAGE = 2
    """The command line, a setting, a pipeline's definition or a payload is wrong."""
    NOT_YET = 3
    """Declined at a prompt, or the run was still going when the waiting ended."""
    PERMISSION = 4
    RUN_FAILED = 5
    """The run ended as failed or cancelled."""
    CONFLICT = 6
    """It contradicts what is stored: key reused, run already there, lock lost."""
    NOT_FOUND = 7
    PROBLEMS = 8
    """`check` or `doctor` found problems, a run did not end as expected, or what was moved is not
    the same."""
    INTERRUPTED = 130
    TERMINATED = 143


class NotConfirmed(errors.HoldfastError):
    """Somebody said no at a prompt."""


class Paused(errors.StillRunning):
    """The run waits for somebody to resume it."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(
            f"run {run_id} is paused: {why}; go on with `holdfast runs resume {run_id}`"
        )
        self.why = why


class RunEnded(errors.HoldfastError):
    """The run ended as failed or cancelled."""

    @classmethod
    def repeatable(cls, run: Run | RunSummary) -> RunEnded:
        """Of a command that resumes its run when it is given again. That is not suggested where
        nothing but other input can help: the error would be the same."""
        ending = f"run {run.id} {run.state}: {run.error or run.reason}"
        if run.error and run.error.name == errors.InvalidInput.__name__:
            return cls(ending)
        return cls(f"{ending}; the same command tries again from there")


class Unexpected(errors.HoldfastError):
    """The run did not end as `--expect` said, or what was moved is not the same."""


_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (errors.NotFound, ExitCode.NOT_FOUND),
    (errors.UnknownPipeline, ExitCode.NOT_FOUND),
    (errors.Conflict, ExitCode.CONFLICT),
    (errors.LeaseLost, ExitCode.CONFLICT),
    (errors.Forbidden, ExitCode.PERMISSION),
    (errors.StillRunning, ExitCode.NOT_YET),
    (errors.Fix, ExitCode.USAGE),
    (errors.RunFailed, ExitCode.RUN_FAILED),
    (errors.RunCancelled, ExitCode.RUN_FAILED),
    (RunEnded, ExitCode.RUN_FAILED),
    (NotConfirmed, ExitCode.NOT_YET),
    (Unexpected, ExitCode.PROBLEMS),
    (PermissionError, ExitCode.PERMISSION),
)


def code_for(error: BaseException) -> ExitCode:
    """The exit code of an error; the first class that fits decides."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.OTHER)
