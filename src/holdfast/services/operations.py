"""What people do to runs, dead letters and locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.runtime import Runtime
from holdfast.errors import Conflict, NotFound, UnknownPipeline
from holdfast.model.commands import (
    Cancel,
    Discard,
    ForceRelease,
    MarkRedriven,
    PauseRun,
    Refused,
    Resume,
)
from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run
from holdfast.ports.bus import Bus, Message
from holdfast.ports.store import DeadLetter
from holdfast.services.lookup import find_run


class Operations:
    """Every change names who made it (`actor`), and the store keeps that with the change."""

    def __init__(
        self,
        runtime: Runtime,
        pipelines: Mapping[str, Pipeline[Any]],
        bus: Bus | None = None,
        *,
        stop_work: Callable[[str], None] = lambda run_id: None,
    ) -> None:
        self._runtime = runtime
        self._pipelines = pipelines
        self._bus = bus
        self._stop_work = stop_work

    # --- runs -------------------------------------------------------------------------------------

    async def find(self, id_or_prefix: str) -> Run:
        """A run by its id or the unique start of it."""
        return await find_run(self._runtime.store, id_or_prefix)

    async def cancel(self, run_id: str, *, actor: str = "api", reason: str = "") -> None:
        """Once this returns, nothing further starts or commits for the run."""
        await self._change(Cancel(run_id, actor, reason), "cancelled")
        self._stop_work(run_id)

    async def pause(self, run_id: str, *, actor: str = "api", reason: str = "") -> None:
        """Park the run, checkpoints kept, until somebody resumes it."""
        await self._change(PauseRun(run_id, actor, reason), "paused")
        self._stop_work(run_id)

    async def resume(self, run_id: str, *, actor: str = "api", attempts: int | None = None) -> None:
        """Let a paused or failed run go on from its checkpoints, with fresh attempts."""
        if attempts is None:
            run = await self.find(run_id)
            pipeline = self._pipelines.get(run.pipeline)
            attempts = pipeline.max_attempts if pipeline else 5
        await self._change(Resume(run_id, actor, attempts), "resumed")

    async def rerun(self, run_id: str, *, from_step: str | None = None) -> RunHandle:
        """The same input again, as a new run linked to the old one."""
        run = await self.find(run_id)
        if run.pipeline not in self._pipelines:
            raise UnknownPipeline(
                f"run {run.id} belongs to pipeline {run.pipeline!r}, which is not registered here"
            )
        return await Intake(self._runtime).rerun(
            self._pipelines[run.pipeline], run, from_step=from_step
        )

    async def _change(self, command: Cancel | PauseRun | Resume, done: str) -> None:
        reply = await self._runtime.committer.send(command)
        if not isinstance(reply, Refused):
            return
        if reply.state is None:
            raise NotFound(f"no run {command.run!r}; `holdfast runs list` shows what there is")
        if reply.run is not None:
            raise Conflict(
                f"run {command.run} can't be {done}: run {reply.run} of the same tenant is live",
                reply.run,
            )
        raise Conflict(f"run {command.run} is {reply.state} and can't be {done}", command.run)

    # --- dead letters -----------------------------------------------------------------------------

    async def dead_letter(self, id: str) -> DeadLetter:
        found = await self._runtime.store.dead_letter(id) or await self._runtime.store.dead_letter(
            f"run:{id}"
        )
        if found is None:
            raise NotFound(f"no dead letter {id!r}; `holdfast dlq list` shows what there is")
        return found

    async def redrive(self, id: str, *, actor: str = "api") -> bool:
        """Send a dead letter on its way again. False when that was done before: it is not sent
        twice."""
        letter = await self.dead_letter(id)
        if letter.closed is not None:
            return False
        if letter.run is not None:
            return await self._redrive_run(letter, actor)
        if self._bus is None:
            raise Conflict(
                f"dead letter {letter.id} came from topic {letter.source!r}, and no bus is "
                "configured"
            )
        # Published first: a crash in between publishes it again with the same id, and intake knows
        # that id.
        await self._bus.publish(
            letter.source, Message(f"redrive:{letter.id}", letter.body, letter.attributes)
        )
        return await self._runtime.committer.send(MarkRedriven(letter.id, actor))

    async def _redrive_run(self, letter: DeadLetter, actor: str) -> bool:
        try:
            await self.resume(letter.run or "", actor=actor)
        except Conflict:
            if (
                await self.dead_letter(letter.id)
            ).closed is not None:  # somebody else redrove it just now
                return False
            raise
        return True

    async def discard(self, id: str, *, actor: str = "api", reason: str = "") -> bool:
        """Close a dead letter for good. False when it was closed before."""
        letter = await self.dead_letter(id)
        return await self._runtime.committer.send(Discard(letter.id, actor, reason))

    # --- locks ------------------------------------------------------------------------------------

    async def release_lock(self, name: str, *, actor: str = "api", reason: str = "") -> None:
        """End a lock against its holder's will: the epoch rises, so the old holder can write
        nothing."""
        if not await self._runtime.committer.send(ForceRelease(name, actor, reason)):
            raise NotFound(f"lock {name!r} is not held; `holdfast locks list` shows what there is")
