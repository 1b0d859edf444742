"""A caller's hold on a run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from holdfast.engine.runtime import Runtime
from holdfast.engine.waiters import Ending
from holdfast.errors import NotFound, RunCancelled, RunFailed
from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run, RunState


class RunHandle:
    """`created` tells a new run from one that already answered the request."""

    def __init__(
        self,
        runtime: Runtime,
        run_id: str,
        pipeline: Pipeline[Any] | None = None,
        *,
        created: bool = False,
    ) -> None:
        self.id = run_id
        self.created = created
        self._runtime = runtime
        self._pipeline = pipeline
        # Made before a worker of this process can possibly have ended the run, so that its word is
        # not missed.
        by_worker = created and bool(runtime.local_workers)
        self._by_worker = runtime.waiters.future(run_id) if by_worker else None

    def __repr__(self) -> str:
        return f"<RunHandle {self.id}>"

    async def info(self) -> Run:
        """The run as the store knows it now."""
        run = await self._runtime.store.run(self.id)
        if run is None:
            raise NotFound(f"run {self.id} does not exist (any more)")
        return run

    async def wait(self, timeout: float | None = None) -> RunState:
        """Wait until the run is succeeded, failed or cancelled. Raises TimeoutError."""
        return RunState((await self._ending(timeout)).state)

    async def result(self, timeout: float | None = None) -> Any:
        """The result of the run, as its type. Raises RunFailed or RunCancelled when there is
        none."""
        ending = await self._ending(timeout)
        if ending.state == RunState.FAILED:
            raise RunFailed(f"run {self.id} failed: {ending.error}", self.id)
        if ending.state == RunState.CANCELLED:
            raise RunCancelled(
                f"run {self.id} was cancelled" + (f": {ending.reason}" if ending.reason else "")
            )
        text = await self._runtime.payloads.run_result(self.id, ending.result, ending.checksum)
        if self._pipeline is None:
            return json.loads(text)
        step = self._pipeline.result_step
        if step.when is not None and text == "null":  # it was skipped
            return None
        return step.result.decode(text)

    async def _ending(self, timeout: float | None) -> Ending:
        waiters = self._runtime.waiters
        if self._by_worker is not None and _may_be_outdated(self._by_worker):
            self._by_worker = None
        waiting = self._by_worker or waiters.future(self.id)
        if self._by_worker is None:
            await waiters.resolve_ended([self.id])
        waiters.watch()
        if timeout is None:
            return await asyncio.shield(waiting)
        async with asyncio.timeout(timeout):
            return await asyncio.shield(waiting)


def _may_be_outdated(ending: asyncio.Future[Ending]) -> bool:
    """A failed run may have been resumed since, and an app that was closed may be open again."""
    if not ending.done() or ending.cancelled():
        return False
    return ending.exception() is not None or ending.result().state == RunState.FAILED
