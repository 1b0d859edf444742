"""Accepting work: validated, fingerprinted, durable before anybody is told that it was accepted."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.engine.handle import RunHandle
from holdfast.engine.payloads import REFERENCE
from holdfast.engine.runtime import Runtime
from holdfast.errors import Conflict, InvalidInput, NotFound, Permanent
from holdfast.model.checkpoint import Checkpoint, digest
from holdfast.model.ids import new_id
from holdfast.model.pipeline import NAME, Pipeline
from holdfast.model.run import Run
from holdfast.ports.commands import Submit, Submitted

In = TypeVar("In")
MAX_KEY = 255


class Intake:
    """Turns a payload into a run, once per idempotency key."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def submit(
        self,
        pipeline: Pipeline[In],
        value: Any,
        *,
        tenant: str = "default",
        key: str | None = None,
        priority: int = 0,
        delay: float = 0.0,
    ) -> RunHandle:
        """Accept a run, or return the run that already answers this request.

        The same key with the same input gives the same run; with another input it raises Conflict.
        """
        checked = pipeline.input.validate(value)
        if key is None and pipeline.key is not None:
            key = pipeline.key(checked)
        _check_names(tenant, key)
        text = pipeline.input.encode(checked)
        return await self._accept(pipeline, text, tenant=tenant, key=key, priority=priority, delay=delay)

    async def rerun(self, pipeline: Pipeline[Any], run: Run, *, from_step: str | None = None) -> RunHandle:
        """The same input as a new run, linked to the old one; results of steps that do not depend on `from_step`
        are taken over."""
        text = await self._runtime.payloads.fetch(run.input)
        if text is None:
            raise Permanent(f"run {run.id} can't be run again: its input is missing from the blob store")
        checkpoints: list[Checkpoint] = []
        run_id = new_id(self._runtime.clock.now())
        if from_step is not None:
            checkpoints = await self._taken_over(pipeline, run, from_step, run_id)
        return await self._accept(
            pipeline, text, tenant=run.tenant, parent=run.id, checkpoints=checkpoints, run_id=run_id
        )

    async def _accept(
        self,
        pipeline: Pipeline[Any],
        text: str,
        *,
        tenant: str,
        key: str | None = None,
        priority: int = 0,
        delay: float = 0.0,
        parent: str | None = None,
        checkpoints: list[Checkpoint] | None = None,
        run_id: str | None = None,
    ) -> RunHandle:
        run_id = run_id or new_id(self._runtime.clock.now())
        stored = text
        if not self._runtime.payloads.fits_inline(text):
            stored = await self._runtime.payloads.stow(text, f"{tenant}/{run_id}/input")
        if not delay:
            self._runtime.expect_work(pipeline.lane.name)
        reply: Submitted = await self._runtime.committer.send(
            Submit(
                run_id,
                tenant,
                pipeline.name,
                pipeline.lane.name,
                stored,
                digest(pipeline.name, text),
                key,
                pipeline.unique,
                priority,
                delay,
                pipeline.max_attempts,
                parent,
                checkpoints or [],
            )
        )
        if reply.conflict:
            raise Conflict(
                f"key {key!r} of tenant {tenant!r} belongs to run {reply.run}, which has another input or pipeline; "
                "use a new key for new work",
                reply.run,
            )
        return RunHandle(self._runtime, reply.run, pipeline, created=reply.created)

    async def _taken_over(self, pipeline: Pipeline[Any], run: Run, from_step: str, run_id: str) -> list[Checkpoint]:
        if from_step not in pipeline.steps:
            raise NotFound(
                f"pipeline {pipeline.name!r} has no step {from_step!r}; its steps: {', '.join(pipeline.steps)}"
            )
        redone = downstream(pipeline, from_step)
        kept = [c for c in await self._runtime.store.checkpoints(run.id) if c.step not in redone]
        return [await self._copied(checkpoint, run, run_id) for checkpoint in kept]

    async def _copied(self, checkpoint: Checkpoint, run: Run, run_id: str) -> Checkpoint:
        """Blobs belong to one run and are deleted with it, so the new run gets its own."""
        if checkpoint.value.startswith(REFERENCE):
            text = await self._runtime.payloads.fetch(checkpoint.value)
            if text is not None:
                folder = f"{run.tenant}/{run_id}/{checkpoint.step}/0"
                checkpoint.value = await self._runtime.payloads.stow(text, folder)
        return checkpoint


def downstream(pipeline: Pipeline[Any], step: str) -> set[str]:
    """A step and all that depend on it."""
    found = {step}
    for name, other in pipeline.steps.items():  # declared in dependency order
        if found & (other.waits_for | set(other.streams)):
            found.add(name)
    return found


def _check_names(tenant: str, key: str | None) -> None:
    if not NAME.fullmatch(tenant):
        raise InvalidInput(
            f"tenant {tenant!r} is not usable: 1 to 64 lower-case letters, digits, '-' or '_', a letter or digit first"
        )
    if key is None:
        return
    if not 1 <= len(key) <= MAX_KEY:
        raise InvalidInput(f"an idempotency key has 1 to {MAX_KEY} characters; this one has {len(key)}")
    if not key.isprintable():
        raise InvalidInput(f"the idempotency key {key!r} contains characters that can't be printed; use plain text")
