"""Accepting work: a run is valid, fingerprinted and durable before its submitter has an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from holdfast.engine.handle import RunHandle
from holdfast.engine.payloads import REFERENCE
from holdfast.engine.runtime import Runtime
from holdfast.errors import Conflict, InvalidInput, NotFound, Permanent
from holdfast.model.checkpoint import Checkpoint, digest
from holdfast.model.commands import Submit, Submitted
from holdfast.model.ids import new_id, new_ids
from holdfast.model.pipeline import NAME, Pipeline
from holdfast.model.run import Run

In = TypeVar("In")
MAX_KEY = 255

SUBMIT_BATCH = 500
"""So many runs of `submit_many` are sent before the next ones are made: nearly what the committer
puts into one batch."""


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
        _check_tenant(tenant)
        _check_steps(pipeline)
        text, key = _checked(pipeline, value, key)
        run_id = self._new_id()
        stored = (
            text
            if self._runtime.payloads.fits_inline(text)
            else await self._offload(run_id, tenant, text)
        )
        command = _command(
            pipeline, run_id, tenant, text, stored, key=key, priority=priority, delay=delay
        )
        return self._handle(pipeline, command, await self._send(command))

    async def submit_many(
        self,
        pipeline: Pipeline[In],
        values: Iterable[Any],
        *,
        tenant: str = "default",
        keys: Sequence[str] | None = None,
        priority: int = 0,
        delay: float = 0.0,
    ) -> list[RunHandle]:
        """Accept many runs at once, in their order. Nothing is accepted unless every input is
        valid.

        A key that belongs to other work raises Conflict, once the others have been accepted.
        """
        values = list(values)
        if keys is not None and len(keys) != len(values):
            raise InvalidInput(
                f"there are {len(values)} inputs and {len(keys)} keys: give each input a key of "
                "its own"
            )
        _check_tenant(tenant)
        _check_steps(pipeline)
        checked = [
            _numbered(number, pipeline, value, keys[number - 1] if keys else None)
            for number, value in enumerate(values, 1)
        ]
        ids = new_ids(self._runtime.clock.now(), len(checked))
        inputs = await self._offload_large(tenant, ids, [text for text, _ in checked])
        commands: list[Submit] = []
        answers: list[asyncio.Future[Submitted]] = []
        for run_id, (text, key), stored in zip(ids, checked, inputs, strict=True):
            commands.append(
                _command(
                    pipeline, run_id, tenant, text, stored, key=key, priority=priority, delay=delay
                )
            )
            answers.append(self._runtime.committer.send(commands[-1]))
            if len(commands) % SUBMIT_BATCH == 0:
                await asyncio.sleep(0)  # the store begins with these while the next ones are made
        return await self._accept_all(pipeline, commands, answers)

    async def rerun(
        self, pipeline: Pipeline[Any], run: Run, *, from_step: str | None = None
    ) -> RunHandle:
        """The same input as a new run, linked to the old one; results of steps that do not depend
        on `from_step` are taken over."""
        text = await self._runtime.payloads.fetch(run.input)
        if text is None:
            raise Permanent(
                f"run {run.id} can't be run again: its input is missing from the blob store"
            )
        checkpoints: list[Checkpoint] = []
        run_id = self._new_id()
        if from_step is not None:
            checkpoints = await self._taken_over(pipeline, run, from_step, run_id)
        stored = await self._offload(run_id, run.tenant, text)
        command = _command(
            pipeline, run_id, run.tenant, text, stored, parent=run.id, checkpoints=checkpoints
        )
        return self._handle(pipeline, command, await self._send(command))

    def _send(self, command: Submit) -> asyncio.Future[Submitted]:
        if not command.delay:
            self._runtime.local_workers.announce(command.lane)
        return self._runtime.committer.send(command)

    async def _accept_all(
        self,
        pipeline: Pipeline[Any],
        commands: list[Submit],
        answers: list[asyncio.Future[Submitted]],
    ) -> list[RunHandle]:
        handles: list[RunHandle] = []
        conflicts: list[Conflict] = []
        try:
            for command, answer in zip(commands, answers, strict=True):
                try:
                    handles.append(self._handle(pipeline, command, await answer))
                except Conflict as conflict:
                    conflicts.append(conflict)
        finally:
            for answer in answers:  # nobody will ask for the rest
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()
        if conflicts:
            raise Conflict(
                f"{conflicts[0]} ({len(handles)} of {len(commands)} were accepted)",
                conflicts[0].run_id,
            )
        return handles

    def _new_id(self) -> str:
        return new_id(self._runtime.clock.now())

    async def _offload_large(self, tenant: str, ids: list[str], texts: list[str]) -> list[str]:
        """The inputs as they are stored: as they are, or as references to blobs."""
        fits = self._runtime.payloads.fits_inline
        return [
            text if fits(text) else await self._offload(run_id, tenant, text)
            for run_id, text in zip(ids, texts, strict=True)
        ]

    async def _offload(self, run_id: str, tenant: str, text: str) -> str:
        """An input as it is stored: as it is or, if it is large, as a reference to a blob."""
        return await self._runtime.payloads.offload(text, f"{tenant}/{run_id}/input")

    def _handle(self, pipeline: Pipeline[Any], command: Submit, reply: Submitted) -> RunHandle:
        if reply.conflict:
            raise Conflict(
                f"key {command.key!r} of tenant {command.tenant!r} belongs to run {reply.run}, "
                "which has another input "
                "or pipeline; use a new key for new work",
                reply.run,
            )
        return RunHandle(self._runtime, reply.run, pipeline, created=reply.created)

    async def _taken_over(
        self, pipeline: Pipeline[Any], run: Run, from_step: str, run_id: str
    ) -> list[Checkpoint]:
        if from_step not in pipeline.steps:
            raise NotFound(
                f"pipeline {pipeline.name!r} has no step {from_step!r}; its steps: "
                f"{', '.join(pipeline.steps)}"
            )
        redone = downstream(pipeline, from_step)
        checkpoints = await self._runtime.store.checkpoints(run.id)
        return [await self._copied(c, run, run_id) for c in checkpoints if c.step not in redone]

    async def _copied(self, checkpoint: Checkpoint, run: Run, run_id: str) -> Checkpoint:
        """Blobs belong to one run and are deleted with it, so the new run gets its own."""
        if checkpoint.value.startswith(REFERENCE):
            text = await self._runtime.payloads.fetch(checkpoint.value)
            if text is not None:
                folder = f"{run.tenant}/{run_id}/{checkpoint.step}/0"
                checkpoint.value = await self._runtime.payloads.offload(text, folder)
        return checkpoint


def _command(
    pipeline: Pipeline[Any],
    run_id: str,
    tenant: str,
    text: str,
    stored: str,
    *,
    key: str | None = None,
    priority: int = 0,
    delay: float = 0.0,
    parent: str | None = None,
    checkpoints: Sequence[Checkpoint] = (),
) -> Submit:
    return Submit(
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
        checkpoints,
    )


def downstream(pipeline: Pipeline[Any], step: str) -> set[str]:
    """A step and all that depend on it."""
    dependents = {step}
    for name, other in pipeline.steps.items():  # declared in dependency order
        if dependents & (other.waits_for | set(other.streams)):
            dependents.add(name)
    return dependents


def _numbered(
    number: int, pipeline: Pipeline[Any], value: Any, key: str | None
) -> tuple[str, str | None]:
    try:
        return _checked(pipeline, value, key)
    except InvalidInput as error:
        raise InvalidInput(f"input {number}: {error}; none of them was accepted") from error


def _checked(pipeline: Pipeline[Any], value: Any, key: str | None) -> tuple[str, str | None]:
    """The input as JSON, and the key that it goes by."""
    checked = pipeline.input.validate(value)
    if key is None and pipeline.key is not None:
        key = pipeline.key(checked)
    if key is not None:
        _check_key(key)
    return pipeline.input.encode(checked), key


def _check_steps(pipeline: Pipeline[Any]) -> None:
    """Raise DefinitionError for a pipeline that can't have a result: nobody could execute its
    runs."""
    _ = pipeline.result_step


def _check_tenant(tenant: str) -> None:
    if not NAME.fullmatch(tenant):
        raise InvalidInput(
            f"tenant {tenant!r} is not usable: 1 to 64 lower-case letters, digits, '-' or '_', a "
            "letter or digit first"
        )


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= MAX_KEY:
        raise InvalidInput(
            f"an idempotency key has 1 to {MAX_KEY} characters; this one has {len(key)}"
        )
    if not key.isprintable():
        raise InvalidInput(
            f"the idempotency key {key!r} contains characters that can't be printed; use plain text"
        )
