"""The workers of this process, for those who submit and wait in the same process."""

from __future__ import annotations

from collections.abc import Callable

OnSubmission = Callable[[str], None]
"""Called with the lane of a run that is about to be submitted."""


class LocalWorkers:
    """Submitting beside a worker saves a commit, and waiting beside one saves reads of the store.

    A worker adds itself when it starts and removes itself when it stops. `Intake` announces every
    submission before it is sent, so that a claim can leave in the same transaction. `Waiters` and
    `RunHandle` look whether there is a worker, because it tells them of endings by itself."""

    def __init__(self) -> None:
        self._listeners: list[OnSubmission] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def add(self, on_submission: OnSubmission) -> None:
        self._listeners.append(on_submission)

    def remove(self, on_submission: OnSubmission) -> None:
        if on_submission in self._listeners:
            self._listeners.remove(on_submission)

    def announce(self, lane: str) -> None:
        for on_submission in self._listeners:
            on_submission(lane)
