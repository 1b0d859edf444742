"""What people do to runs, dead letters and locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.engine import cursors
from holdfast.engine.handle import RunHandle
from holdfast.engine.leader_history import LeaderHistory
from holdfast.engine.relay import PROJECTION, Target
from holdfast.engine.reruns import rerun
from holdfast.engine.runtime import Runtime
from holdfast.errors import Conflict, NotFound, UnknownPipeline
from holdfast.model import limits
from holdfast.model.commands import (
    RUN_LETTER,
    Cancel,
    Discard,
    ForceRelease,
    MarkRedriven,
    PauseRun,
    Refused,
    Resume,
)
from holdfast.model.event import Event
from holdfast.model.lane import LANE_LOCK
from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run, RunState
from holdfast.ports.bus import Bus, Message
from holdfast.ports.store import DeadLetter, RunFilter
from holdfast.services.audit import write_entry
from holdfast.services.lookup import find_run
from holdfast.services.pipeline_locks import PREFIX as PIPELINE_LOCK
from holdfast.services.pipeline_locks import PipelineLocks


class Operations:
    """Every change names who made it (`actor`), and the store keeps that with the change."""

    def __init__(
        self,
        runtime: Runtime,
        pipelines: Mapping[str, Pipeline[Any]],
        bus: Bus | None = None,
        *,
        stop_work: Callable[[str], None] = lambda run_id: None,
        targets: Mapping[str, Target] | None = None,
    ) -> None:
        self._runtime = runtime
        self._pipelines = pipelines
        self._bus = bus
        self._stop_work = stop_work
        self._targets = targets or {}

    # --- runs -------------------------------------------------------------------------------------

    async def find(self, name: str) -> Run:
        """A run by its id, its idempotency key, or the unique start of its id. All that is done to
        a run takes these names."""
        return await find_run(self._runtime.store, name)

    async def cancel(self, run_id: str, *, actor: str = "api", reason: str = "") -> None:
        """Once this returns nothing commits for the run any more, and a worker of this process has
        stopped working on it. In other processes nothing further starts later than 0.2 s after it
        while notifications arrive and the event loop is free, and by the next renewal otherwise."""
        self._stop_work(await self._change(Cancel(run_id, actor, reason), "cancelled"))

    async def pause(self, run_id: str, *, actor: str = "api", reason: str = "") -> None:
        """Park the run, checkpoints kept, until somebody resumes it. Work on it ends as soon as by
        `cancel`."""
        self._stop_work(await self._change(PauseRun(run_id, actor, reason), "paused"))

    async def resume(self, run_id: str, *, actor: str = "api", attempts: int | None = None) -> None:
        """Let a paused or failed run go on from its checkpoints, with fresh attempts."""
        if attempts is None:
            run = await self.find(run_id)
            pipeline = self._pipelines.get(run.pipeline)
            attempts = pipeline.max_attempts if pipeline else 5
        attempts = limits.whole("attempts", attempts, 1, limits.MAX_ATTEMPTS)
        await self._change(Resume(run_id, actor, attempts), "resumed")

    async def rerun(
        self, run_id: str, *, from_step: str | None = None, actor: str = "api"
    ) -> RunHandle:
        """The same input again, as a new run linked to the old one."""
        run = await self.find(run_id)
        if run.pipeline not in self._pipelines:
            raise UnknownPipeline(
                f"run {run.id} belongs to pipeline {run.pipeline!r}, which is not registered here"
            )
        pipeline = self._pipelines[run.pipeline]
        handle = await rerun(self._runtime, pipeline, run, from_step=from_step)
        await write_entry(self._runtime.records, actor, "rerun", f"{run.id} as {handle.id}")
        return handle

    async def _change(self, command: Cancel | PauseRun | Resume, done: str) -> str:
        """Answers the run's id."""
        reply = await self._runtime.committer.send(command)
        if isinstance(reply, Refused) and reply.state is None:  # it is no id
            command = replace(command, run=(await self.find(command.run)).id)
            reply = await self._runtime.committer.send(command)
        if not isinstance(reply, Refused):
            return command.run
        if reply.run is not None:
            raise Conflict(
                f"run {command.run} can't be {done}: run {reply.run} of the same tenant is live",
                reply.run,
            )
        state = reply.state or "damaged"  # it is there, and no store can decide about it
        raise Conflict(f"run {command.run} is {state} and can't be {done}", command.run)

    # --- dead letters -----------------------------------------------------------------------------

    async def dead_letter(self, id: str) -> DeadLetter:
        store, letter = self._runtime.store, None
        if limits.is_text(id):
            letter = await store.dead_letter(id) or await store.dead_letter(f"{RUN_LETTER}{id}")
        if letter is None:
            raise NotFound(f"no dead letter {id!r}; `holdfast dlq list` shows what there is")
        return letter

    async def redrive(self, id: str, *, actor: str = "api") -> bool:
        """Send a dead letter on its way again. False when that was done before: it is not sent
        twice."""
        letter = await self.dead_letter(id)
        if letter.closed is not None:
            return False
        if letter.run is not None:
            return await self._redrive_run(letter, actor)
        if letter.source.startswith(PROJECTION):
            return await self._redrive_projection(letter, actor)
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

    async def _redrive_projection(self, letter: DeadLetter, actor: str) -> bool:
        """Deliver its event once more; what leaves has the same ids as before."""
        name = letter.source.removeprefix(PROJECTION)
        target = self._targets.get(name)
        if target is None:
            raise Conflict(
                f"dead letter {letter.id} belongs to projection {name!r}, which does not run here: "
                "pass --app and the settings of the process that declares it"
            )
        cursor = await cursors.load(self._runtime.records, name)
        generation = cursor.state.generation if cursor is not None else 0
        await target.deliver(msgspec.json.decode(letter.body, type=Event), generation)
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
        nothing. A pipeline lock is freed for the next one; it has no epoch. `pipeline_lock:RUN` is
        that of a run: it is taken from its worker and goes on with another."""
        limits.name("lock", name, limits.MAX_KEY)
        if name.startswith(PIPELINE_LOCK):
            await self._release_pipeline_lock(name, actor, reason)
            return
        held = {lock.name: lock.epoch for lock in await self._runtime.store.locks()}
        if not await self._runtime.committer.send(ForceRelease(name, actor, reason)):
            raise NotFound(f"lock {name!r} is not held; `holdfast locks list` shows what there is")
        if name.startswith(LANE_LOCK) and name in held:
            history = LeaderHistory(self._runtime.records, name.removeprefix(LANE_LOCK))
            why = f"released by {actor}" + (f": {reason}" if reason else "")
            await history.end(held[name], why)

    async def _release_pipeline_lock(self, name: str, actor: str, reason: str) -> None:
        records = self._runtime.records
        try:
            await PipelineLocks(records).force_release(name)
        except NotFound as not_held:
            run = await self._running(name.removeprefix(PIPELINE_LOCK))
            if run is None:
                raise not_held from None
            await self.pause(run.id, actor=actor, reason=reason)
            await self.resume(run.id, actor=actor)
        else:
            await write_entry(records, actor, "release_lock", name, reason)

    async def _running(self, name: str) -> Run | None:
        """The run of this name, if somebody works on it."""
        try:
            run = await self.find(name)
        except NotFound:
            if await self._runtime.store.runs(RunFilter(key=name), limit=1):
                raise  # several have this key
            return None
        return run if run.state is RunState.RUNNING else None

    async def step_down(self, lane: str, *, actor: str = "api", reason: str = "") -> None:
        """End the leadership of a fifo lane: the next worker leads, under a higher term. A run
        under way goes on where it is, and the lane waits for it."""
        info = next((info for info in await self._runtime.store.lanes() if info.name == lane), None)
        if info is None:
            raise NotFound(f"no lane {lane!r}; `holdfast lanes list` shows what there is")
        if info.order != "fifo":
            raise Conflict(f"lane {lane!r} is parallel and has no leader")
        if info.leader is None:
            raise NotFound(f"lane {lane!r} has no leader now")
        await self.release_lock(f"{LANE_LOCK}{lane}", actor=actor, reason=reason)
