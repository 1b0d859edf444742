"""How a step that did not succeed leaves: for good, for later, or because the worker stops."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.model.run import ErrorInfo

WAIT_IN_PLACE = 60.0
"""Up to this long a retry is waited for with the lease held; longer ones give the run back to the
queue."""


class StepFailed(HoldfastError):
    """A step failed for good."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(str(info))
        self.info = info


class TryLater(HoldfastError):
    """A step or item wants to be tried again after so long that its run should not wait in a
    worker."""

    def __init__(self, delay: float, info: ErrorInfo) -> None:
        super().__init__(str(info))
        self.delay = delay
        self.info = info


class Drained(HoldfastError):
    """The worker stops while the step waits for its next try."""
