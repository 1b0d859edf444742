"""Secrets that came with messages: in the memory of the process that received them, and nowhere
else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from holdfast.errors import Pause
from holdfast.model.run import Run
from holdfast.model.secrecy import remember
from holdfast.model.secret_fields import normalised

MAX_RUNS = 10_000
"""Runs whose secrets are remembered: the oldest are forgotten, should there be more."""

NEEDS_KEY = "needs the key that came with its message"
"""What the reason of a run begins with that waits for a secret."""


class JobSecrets:
    """Run → its secrets, by their paths in the message."""

    def __init__(self) -> None:
        self._by_run: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def put(self, run: str, secrets: Mapping[str, str]) -> None:
        if not secrets:
            return
        remember(secrets.values())
        self._by_run[run] = secrets
        self._by_run.move_to_end(run)
        while len(self._by_run) > MAX_RUNS:
            self._by_run.popitem(last=False)

    def get(self, run: str, names: Iterable[str]) -> str | None:
        """The secret of the first of these names; a name is the last part of a path, in any
        spelling."""
        secrets = self._by_run.get(run, {})
        by_name = {normalised(path.rsplit(".", 1)[-1]): value for path, value in secrets.items()}
        return next((by_name[n] for name in names if (n := normalised(name)) in by_name), None)

    def drop(self, run: str) -> None:
        self._by_run.pop(run, None)


def pause_for(run: Run, names: str) -> Pause:
    """What a step raises whose run came with a secret that this process was never given."""
    return Pause(
        f"{NEEDS_KEY} ({names}), which only the process that received it knew: configure a key "
        f"for this worker, then `holdfast runs resume {run.id}`, or send the message again"
    )
