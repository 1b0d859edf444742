"""Accepting work: a run is valid, fingerprinted and durable before its submitter has an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.engine.handle import RunHandle
from holdfast.engine.runtime import Runtime
from holdfast.engine.submission import SubmitOptions, draft, drafts
from holdfast.errors import Conflict, KeyReused, QuotaExceeded
from holdfast.model.commands import Submit, Submitted
from holdfast.model.ids import new_id, new_ids
from holdfast.model.names import path_part
from holdfast.model.pipeline import Pipeline
from holdfast.model.tenant import DEFAULT_TENANT
from holdfast.ports.store import RunFilter

log = logging.getLogger("holdfast.intake")

In = TypeVar("In")

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
        options: SubmitOptions,
        *,
        key: str | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> RunHandle:
        """Accept a run, or return the run that already answers this request.

        The same key with the same input gives the same run; with another input it raises Conflict.
        `secrets` are given to steps of this process, and stored nowhere."""
        options = options.checked()
        new, run_id = draft(pipeline, value, key, options.labels), self.new_id()
        stored = await self.stored_input(run_id, options.tenant, new.text)
        command = new.command(run_id, pipeline, stored, options)
        return await self.accept(pipeline, command, secrets)

    async def submit_many(
        self,
        pipeline: Pipeline[In],
        values: Iterable[Any],
        options: SubmitOptions,
        *,
        keys: Sequence[str] | None = None,
    ) -> list[RunHandle]:
        """Accept many runs at once, in their order. Nothing is accepted unless every input is
        valid.

        A key that belongs to other work raises Conflict, once the others have been accepted."""
        options = options.checked()
        new = drafts(pipeline, list(values), keys, options.labels)
        ids = new_ids(self._runtime.clock.now(), len(new))
        inputs = [
            await self.stored_input(run_id, options.tenant, run.text)
            for run_id, run in zip(ids, new, strict=True)
        ]
        made: Iterable[Submit] = (
            run.command(run_id, pipeline, stored, options)
            for run_id, run, stored in zip(ids, new, inputs, strict=True)
        )
        counted: Collection[str] = ()
        if options.tenant != DEFAULT_TENANT:
            made = list(made)
            counted = await self._admit(options.tenant, made)
        commands, answers = await self._send_all(pipeline, made)
        return await self._handles(pipeline, commands, answers, counted)

    async def accept(
        self, pipeline: Pipeline[Any], command: Submit, secrets: Mapping[str, str] | None = None
    ) -> RunHandle:
        """Have one run accepted, if the quotas of its tenant allow it."""
        counted = await self._admit(command.tenant, [command])
        if not secrets:
            return self._handle(pipeline, command, await self._send(command), counted)
        # A worker of this process may have the run before we have the answer.
        self._runtime.job_secrets.put(command.id, secrets)
        reply = await self._send(command)
        if reply.run != command.id:
            self._runtime.job_secrets.drop(command.id)
            self._runtime.job_secrets.put(reply.run, secrets)
        return self._handle(pipeline, command, reply, counted)

    def new_id(self) -> str:
        return new_id(self._runtime.clock.now())

    async def stored_input(self, run_id: str, tenant: str, text: str) -> str:
        """An input as it is stored: as it is or, if it is large, as a reference to a blob."""
        payloads = self._runtime.payloads
        if payloads.fits_inline(text):
            return text
        return await payloads.offload(text, f"{path_part(tenant)}/{run_id}/input")

    # --- quotas -----------------------------------------------------------------------------------

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

    # --- sending ----------------------------------------------------------------------------------

    def _send(self, command: Submit) -> asyncio.Future[Submitted]:
        if not command.delay:
            self._runtime.local_workers.announce(command.lane)
        return self._runtime.committer.send(command)

    async def _send_all(
        self, pipeline: Pipeline[Any], made: Iterable[Submit]
    ) -> tuple[list[Submit], list[asyncio.Future[Submitted]]]:
        """The commands, and their answers to come. Only a fifo lane promises an order."""
        committer = self._runtime.committer
        if pipeline.lane.order == "fifo":
            commands = list(made)
            return commands, committer.send_in_order(commands)
        commands, answers = [], []
        for command in made:
            commands.append(command)
            answers.append(committer.send(command))
            if len(commands) % SUBMIT_BATCH == 0:
                await asyncio.sleep(0)  # the store begins with these while the next ones are made
        return commands, answers

    # --- answering --------------------------------------------------------------------------------

    async def _handles(
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
