"""A test engine whose workers are killed, stopped, paused and added by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import RunHandle, WorkerOptions
from holdfast.testing.engine import TestEngine


class Lab(TestEngine):
    """A `TestEngine` that controls its workers and changes stored data."""

    def __init__(self, *pipelines: Any, options: WorkerOptions | None = None, **more: Any) -> None:
        options = options or WorkerOptions(poll=5.0, progress=2.0)
        super().__init__(*pipelines, worker=options, **more)

    def kill(self) -> None:
        """The worker dies where it is."""
        self._process.kill()

    def freeze(self, seconds: float) -> None:
        """Pause the worker, as SIGSTOP does."""
        self._process.pause(seconds)

    def worker_tasks(self) -> set[asyncio.Task[Any]]:
        """The worker's tasks."""
        return asyncio.all_tasks(self._process.loop)

    def join(self) -> None:
        """Start another worker beside the first one."""
        self._worker = None
        self._ensure_worker()

    def stop(self, grace: float | None = None) -> None:
        """Tell the worker to stop, and wait until it has."""
        worker, self._worker = self._worker, None
        self.world.run(worker.close(grace), self._process)

    def deploy(self, *pipelines: Any) -> None:
        """Use other code from the next worker on."""
        self._pipelines = pipelines

    def operate(self, name: str, *args: Any, **options: Any) -> Any:
        return self.call(getattr(self.app.operations, name)(*args, **options))

    def damage(self, run: RunHandle, step: str, key: str = "", **changes: Any) -> None:
        """Change a checkpoint directly in the store."""
        stored = self.store._tables.runs[run.id].checkpoints
        stored[step, key] = replace(stored[step, key], **(changes or {"value": '"damaged"'}))

    def lose_blobs(self) -> None:
        self._blobs._objects.clear()

    def times(self, step: str, key: str | None = None) -> int:
        """How often a step (or one of its items) was executed."""
        return sum(s == step and k == (key or "") for _, s, k in self.executed)

    def events(self, run: RunHandle) -> list[str]:
        return [str(event.type) for event in self.history(run)]


@pytest.fixture
def lab() -> Iterator[Callable[..., Lab]]:
    """`lab(pipeline, …)`: an engine of its own for each call."""
    labs: list[Lab] = []

    def make(*pipelines: Any, **options: Any) -> Lab:
        labs.append(Lab(*pipelines, **options))
        return labs[-1]

    yield make
    for entry in labs:
        entry.close()
