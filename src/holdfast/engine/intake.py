"""Accepting work: a run is valid, fingerprinted and durable before its submitter has an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from holdfast.engine.handle import RunHandle
from holdfast.engine.payloads import REFERENCE
from holdfast.engine.runtime import Runtime
from holdfast.engine.submitter import with_submitter
from holdfast.engine.tracing import caused_by
from holdfast.errors import (
    Conflict,
    Damaged,
    InvalidInput,
    KeyReused,
    NotFound,
    QuotaExceeded,
)
from holdfast.model.checkpoint import Checkpoint, input_fingerprint
from holdfast.model.commands import Submit, Submitted
from holdfast.model.ids import new_id, new_ids
from holdfast.model.limits import MAX_PRIORITY, duration, whole
from holdfast.model.names import check_labels, check_tenant, path_part
from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run
from holdfast.model.tenant import DEFAULT_TENANT
from holdfast.ports.store import RunFilter

log = logging.getLogger("holdfast.intake")

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
        labels: Mapping[str, str] | None = None,
        attributes: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        unique: bool = False,
    ) -> RunHandle:
        """Accept a run, or return the run that already answers this request.

        The same key with the same input gives the same run; with another input it raises Conflict.
        A `unique` run is treated as one of a unique pipeline.
        `secrets` are given to steps of this process, and stored nowhere."""
        tenant = check_tenant(tenant)
        _check_steps(pipeline)
        priority, delay = _checked_priority(priority), duration("delay", delay)
        text, key, labels = _checked(pipeline, value, key, labels)
        run_id = self._new_id()
        stored = (
            text
            if self._runtime.payloads.fits_inline(text)
            else await self._offload(run_id, tenant, text)
        )
        command = _command(
            pipeline,
            run_id,
            tenant,
            text,
            stored,
            key=key,
            priority=priority,
            delay=delay,
            labels=labels,
            attributes=with_submitter(caused_by(dict(attributes or {}))),
            unique=unique,
        )
        counted = await self._admit(tenant, [command])
        if not secrets:
            return self._handle(pipeline, command, await self._send(command), counted)
        # A worker of this process may have the run before we have the answer.
        self._runtime.job_secrets.put(run_id, secrets)
        reply = await self._send(command)
        if reply.run != run_id:
            self._runtime.job_secrets.drop(run_id)
            self._runtime.job_secrets.put(reply.run, secrets)
        return self._handle(pipeline, command, reply, counted)

    async def submit_many(
        self,
        pipeline: Pipeline[In],
        values: Iterable[Any],
        *,
        tenant: str = "default",
        keys: Sequence[str] | None = None,
        priority: int = 0,
        delay: float = 0.0,
        labels: Mapping[str, str] | None = None,
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
        tenant = check_tenant(tenant)
        _check_steps(pipeline)
        priority, delay = _checked_priority(priority), duration("delay", delay)
        checked = [
            _numbered(number, pipeline, value, keys[number - 1] if keys else None, labels)
            for number, value in enumerate(values, 1)
        ]
        ids = new_ids(self._runtime.clock.now(), len(checked))
        inputs = await self._offload_large(tenant, ids, [text for text, _, _ in checked])
        attributes = with_submitter(caused_by({}))
        made: Iterable[Submit] = (
            _command(
                pipeline,
                run_id,
                tenant,
                text,
                stored,
                key=key,
                priority=priority,
                delay=delay,
                labels=run_labels,
                attributes=attributes,
            )
            for run_id, (text, key, run_labels), stored in zip(ids, checked, inputs, strict=True)
        )
        counted: Collection[str] = ()
        if tenant != DEFAULT_TENANT:
            made = list(made)
            counted = await self._admit(tenant, made)
        if pipeline.lane.order == "fifo":
            commands = list(made)
            answers = self._runtime.committer.send_in_order(commands)
            return await self._accept_all(pipeline, commands, answers, counted)
        commands, answers = [], []
        for command in made:
            commands.append(command)
            answers.append(self._runtime.committer.send(command))
            if len(commands) % SUBMIT_BATCH == 0:
                await asyncio.sleep(0)  # the store begins with these while the next ones are made
        return await self._accept_all(pipeline, commands, answers, counted)

    async def rerun(
        self, pipeline: Pipeline[Any], run: Run, *, from_step: str | None = None
    ) -> RunHandle:
        """The same input as a new run, linked to the old one; results of steps that do not depend
        on `from_step` are taken over."""
        text = await self._runtime.payloads.input_of(run)
        checkpoints: list[Checkpoint] = []
        run_id = self._new_id()
        if from_step is not None:
            checkpoints = await self._taken_over(pipeline, run, from_step, run_id)
        stored = await self._offload(run_id, run.tenant, text)
        command = _command(
            pipeline,
            run_id,
            run.tenant,
            text,
            stored,
            parent=run.id,
            checkpoints=checkpoints,
            labels=run.labels,
            attributes=with_submitter({}),
        )
        counted = await self._admit(run.tenant, [command])
        return self._handle(pipeline, command, await self._send(command), counted)

    async def _admit(self, tenant: str, commands: Sequence[Submit]) -> Collection[str]:
        """The runs that count against the tenant's quotas. Raises QuotaExceeded, but not for what
        was accepted before: who asks again after a lost answer gets that run."""
        if tenant == DEFAULT_TENANT:
            return ()
        admission = self._runtime.admission
        try:
            return await admission.admit(tenant, [command.id for command in commands])
        except QuotaExceeded as error:
            fresh = [command.id for command in commands if not await self._is_known(command)]
            if len(fresh) == len(commands):
                if self._runtime.meter is not None:
                    self._runtime.meter.refused(tenant, error.quota)
                raise
            return await admission.admit(tenant, fresh)

    async def _is_known(self, command: Submit) -> bool:
        """Whether there is a run that answers this submission."""
        store = self._runtime.store
        if command.key is not None:
            where = RunFilter(command.tenant, key=command.key)
            if await store.runs(where, limit=1):
                return True
        if not command.unique:
            return False
        slot = (command.tenant, command.pipeline)
        return any((run.tenant, run.pipeline) == slot for run in await store.unique_runs())

    def _send(self, command: Submit) -> asyncio.Future[Submitted]:
        if not command.delay:
            self._runtime.local_workers.announce(command.lane)
        return self._runtime.committer.send(command)

    async def _accept_all(
        self,
        pipeline: Pipeline[Any],
        commands: list[Submit],
        answers: list[asyncio.Future[Submitted]],
        counted: Collection[str],
    ) -> list[RunHandle]:
        handles: list[RunHandle] = []
        conflicts: list[Conflict] = []
        try:
            for command, answer in zip(commands, answers, strict=True):
                try:
                    handles.append(self._handle(pipeline, command, await answer, counted))
                except Conflict as conflict:
                    conflicts.append(conflict)
        finally:
            for answer in answers:  # nobody will ask for the rest
                if not answer.cancel() and not answer.cancelled():
                    answer.exception()
        if conflicts:
            raise KeyReused(
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
        return await self._runtime.payloads.offload(text, f"{path_part(tenant)}/{run_id}/input")

    def _handle(
        self,
        pipeline: Pipeline[Any],
        command: Submit,
        reply: Submitted,
        counted: Collection[str],
    ) -> RunHandle:
        if command.id in counted:
            is_new = reply.created and not reply.conflict
            self._runtime.admission.answered(command.tenant, command.id, is_new=is_new)
        if self._runtime.meter is not None and not reply.conflict:
            self._runtime.meter.submitted(
                command.tenant, command.pipeline, created=reply.created, unique=command.unique
            )
        if reply.conflict:
            raise KeyReused(
                f"key {command.key!r} of tenant {command.tenant!r} belongs to run {reply.run}, "
                "which has another input "
                "or pipeline; use a new key for new work",
                reply.run,
            )
        if reply.created and log.isEnabledFor(logging.DEBUG):
            _log_accepted(command)
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
        copies = [await self._copied(c, run, run_id) for c in checkpoints if c.step not in redone]
        return [copied for copied in copies if copied is not None]

    async def _copied(self, checkpoint: Checkpoint, run: Run, run_id: str) -> Checkpoint | None:
        """Blobs belong to one run and are deleted with it, so the new run gets its own. What is
        damaged is not taken over."""
        if checkpoint.value.startswith(REFERENCE):
            try:
                text = await self._runtime.payloads.result(checkpoint)
            except Damaged:
                return None
            folder = f"{path_part(run.tenant)}/{run_id}/{checkpoint.step}/0"
            checkpoint.value = await self._runtime.payloads.offload(text, folder)
        return checkpoint


def _log_accepted(command: Submit) -> None:
    fields = {
        "event": "run.accepted",
        "run": command.id,
        "pipeline": command.pipeline,
        "lane": command.lane,
        "run_key": command.key,
        "labels": command.labels,
    }
    log.debug(
        "run %s of %s: accepted into lane %s",
        command.id,
        command.pipeline,
        command.lane,
        extra={"fields": {name: value for name, value in fields.items() if value}},
    )


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
    labels: Mapping[str, str],
    attributes: Mapping[str, str] = {},
    unique: bool = False,
) -> Submit:
    return Submit(
        run_id,
        tenant,
        pipeline.name,
        pipeline.lane.name,
        stored,
        input_fingerprint(pipeline.name, text),
        key,
        unique or pipeline.unique,
        priority,
        delay,
        pipeline.max_attempts,
        parent,
        checkpoints,
        dict(labels),
        dict(attributes),
    )


def downstream(pipeline: Pipeline[Any], step: str) -> set[str]:
    """A step and all that depend on it."""
    dependents = {step}
    for name, other in pipeline.steps.items():  # declared in dependency order
        if dependents & (other.waits_for | set(other.streams)):
            dependents.add(name)
    return dependents


def _numbered(
    number: int,
    pipeline: Pipeline[Any],
    value: Any,
    key: str | None,
    labels: Mapping[str, str] | None,
) -> Checked:
    try:
        return _checked(pipeline, value, key, labels)
    except InvalidInput as error:
        raise InvalidInput(f"input {number}: {error}; none of them was accepted") from error


class Checked(NamedTuple):
    """An input as JSON, the key that it goes by, and what it is found by."""

    text: str
    key: str | None
    labels: Mapping[str, str]


def _checked(
    pipeline: Pipeline[Any], value: Any, key: str | None, labels: Mapping[str, str] | None
) -> Checked:
    checked = pipeline.input.validate(value)
    if key is None and pipeline.key is not None:
        key = pipeline.key(checked)
    if key is not None:
        key = _checked_key(key)
    if pipeline.labels is not None:
        labels = {**pipeline.labels(checked), **(labels or {})}
    plain = {} if labels is None else check_labels(labels)
    return Checked(pipeline.input.encode(checked), key, plain)


def _check_steps(pipeline: Pipeline[Any]) -> None:
    """Raise DefinitionError for a pipeline that can't have a result: nobody could execute its
    runs."""
    _ = pipeline.result_step


def _checked_priority(priority: int) -> int:
    return whole("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)


def _checked_key(key: str) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the idempotency key {key!r:.100} is no text: give str(…)")
    key = str(key)  # perhaps it is one of numpy's
    if not 1 <= len(key) <= MAX_KEY:
        raise InvalidInput(
            f"an idempotency key has 1 to {MAX_KEY} characters; this one has {len(key)}"
        )
    if not key.isprintable():
        raise InvalidInput(
            f"the idempotency key {key!r} contains characters that can't be printed; use plain text"
        )
    return key
