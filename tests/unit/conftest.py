"""The laboratory: a test engine whose workers are killed, stopped, frozen and joined by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import RunHandle, WorkerOptions
from holdfast.testing.engine import TestEngine


class Lab(TestEngine):
    """A `TestEngine` with a hand on its workers and on what is stored."""

    def __init__(self, *pipelines: Any, options: WorkerOptions | None = None, **more: Any) -> None:
        options = options or WorkerOptions(poll=5.0, progress=2.0)
        super().__init__(*pipelines, worker=options, **more)

    def kill(self) -> None:
        """The worker dies where it is."""
        self._process.kill()

    def freeze(self, seconds: float) -> None:
        """The worker stands still, all it has in its hands, and goes on later."""
        self._process.pause(seconds)

    def worker_tasks(self) -> set[asyncio.Task[Any]]:
        """What the worker has under way."""
        return asyncio.all_tasks(self._process.loop)

    def join(self) -> None:
        """Another worker starts beside the one there is."""
        self._worker = None
        self._ensure_worker()

    def stop(self, grace: float | None = None) -> None:
        """Tell the worker to stop, and wait until it has."""
        worker, self._worker = self._worker, None
        self.world.run(worker.close(grace), self._process)

    def deploy(self, *pipelines: Any) -> None:
        """From the next worker on, other code runs."""
        self._pipelines = pipelines

    def operate(self, name: str, *args: Any, **options: Any) -> Any:
        return self.call(getattr(self.app.operations, name)(*args, **options))

    def damage(self, run: RunHandle, step: str, key: str = "", **changes: Any) -> None:
        """Change a checkpoint behind everybody's back."""
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
    """`lab(pipeline, …)`: a laboratory of its own for each test."""
    labs: list[Lab] = []

    def make(*pipelines: Any, **options: Any) -> Lab:
        labs.append(Lab(*pipelines, **options))
        return labs[-1]

    yield make
    for entry in labs:
        entry.close()
