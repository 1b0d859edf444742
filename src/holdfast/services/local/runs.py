"""Runs on an open store: submit, look, follow, change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from msgspec import Raw

from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.snapshots import Snapshots
from holdfast.engine.submission import SubmitOptions
from holdfast.engine.submitter import submitting
from holdfast.errors import (
    Damaged,
    InvalidInput,
    NotFound,
    RunCancelled,
    RunFailed,
    StillRunning,
)
from holdfast.model.run import FINISHED, Run, RunState
from holdfast.ports.store import RunFilter
from holdfast.services.artifacts import ArtifactView, list_artifacts, read_artifact
from holdfast.services.explanation import Explanation, explain
from holdfast.services.following import follow
from holdfast.services.local.context import ServiceContext
from holdfast.services.service import Accepted, Changed, Page, Submission
from holdfast.services.views import (
    EventView,
    LogView,
    RunSummary,
    RunView,
    event_view,
    live_view,
    log_view,
    run_view,
    summary,
)

MAX_POSITION = 2**63 - 1


class LocalRuns:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._store = context.store

    # --- submitting -------------------------------------------------------------------------------

    async def submit(
        self, pipeline: str, input: Any, *, key: str | None = None, about: Submission
    ) -> Accepted:
        with submitting(self._context.actor):
            handle = await self._intake.submit(
                self._context.catalogue.find(pipeline),
                input,
                self._options(about),
                key=key,
            )
        return await self._accepted(handle)

    async def submit_many(
        self,
        pipeline: str,
        inputs: Sequence[Any],
        *,
        keys: Sequence[str] | None = None,
        about: Submission,
    ) -> list[Accepted]:
        if about.unique:
            raise InvalidInput("only one run can be unique: submit it alone")
        with submitting(self._context.actor):
            handles = await self._intake.submit_many(
                self._context.catalogue.find(pipeline),
                inputs,
                self._options(about),
                keys=keys,
            )
        return [await self._accepted(handle) for handle in handles]

    @property
    def _intake(self) -> Intake:
        return Intake(self._context.runtime)

    def _options(self, about: Submission) -> SubmitOptions:
        return SubmitOptions(
            tenant=self._context.tenant or self._context.submits_for,
            priority=about.priority,
            delay=about.delay,
            labels=about.labels,
            unique=about.unique,
        )

    async def _accepted(self, handle: RunHandle) -> Accepted:
        return Accepted(self._summary(await handle.info()), handle.created)

    # --- looking ----------------------------------------------------------------------------------

    async def list(
        self, where: RunFilter, *, limit: int = 50, cursor: str | None = None
    ) -> Page[RunSummary]:
        tenant = self._context.tenant
        if tenant is not None and where.tenant not in (None, tenant):
            return Page([])
        filter = RunFilter(
            tenant or where.tenant,
            where.pipeline,
            where.state,
            where.lane,
            where.id_prefix,
            where.key,
            where.labels,
        )
        runs = await self._store.runs(filter, limit=limit + 1, before=_position(cursor))
        page = runs[:limit]
        more = len(runs) > limit
        return Page([self._summary(run) for run in page], str(page[-1].seq) if more else None)

    async def find(self, name: str) -> RunSummary:
        return self._summary(await self._context.find_run(name))

    async def show(self, name: str) -> RunView:
        return await self._full_view(await self._context.find_run(name))

    async def result(self, name: str) -> Raw:
        run = await self._context.find_run(name)
        if run.state == RunState.FAILED:
            raise RunFailed(f"run {run.id} has no result, it failed: {run.error}", run.id)
        if run.state == RunState.CANCELLED:
            why = f": {run.reason}" if run.reason else ""
            raise RunCancelled(f"run {run.id} has no result, it was cancelled{why}")
        if run.state != RunState.SUCCEEDED and run.damage:
            raise Damaged(f"run {run.id}: {run.damage}")
        if run.state != RunState.SUCCEEDED:
            raise StillRunning(
                f"run {run.id} is {run.state}; wait for it with `holdfast runs watch {run.id}`"
            )
        return Raw((await self._context.runtime.payloads.result_of(run)).encode())

    async def state(self, name: str) -> Raw:
        document = self._context.state_document
        if document is None:
            raise NotFound("the app compat, which makes state documents, is not installed here")
        run = await self._context.find_run(name)
        snapshots = Snapshots(self._store, self._context.runtime.payloads)
        steps = self._context.declared_steps(run)
        snapshot = await snapshots.read(run.id, self._context.now, steps, results=True)
        if snapshot is None:
            raise NotFound(f"run {run.id} does not exist any more")
        return Raw(document(snapshot))

    async def artifacts(self, name: str) -> list[ArtifactView]:
        run = await self._context.find_run(name)
        return await list_artifacts(self._context.runtime.payloads, run)

    async def artifact(self, name: str, id: str) -> bytes:
        run = await self._context.find_run(name)
        return await read_artifact(self._context.runtime.payloads, run, id)

    async def events(self, name: str, *, after: int = 0) -> list[EventView]:
        run = await self._context.find_run(name)
        return [event_view(event) for event in (await self._store.history(run.id))[after:]]

    async def logs(self, name: str, *, after: int = 0, limit: int = 1000) -> list[LogView]:
        run = await self._context.find_run(name)
        lines = await self._store.logs(run.id, after=after, limit=limit)
        return [log_view(line) for line in lines]

    async def explain(self, name: str) -> Explanation:
        run = await self._context.find_run(name)
        return await explain(self._store, run, tenant=self._context.tenant)

    def _summary(self, run: Run) -> RunSummary:
        return summary(run, self._context.now)

    async def _full_view(self, run: Run) -> RunView:
        steps = self._context.declared_steps(run)
        return await run_view(self._store, run, self._context.now, steps)

    # --- following --------------------------------------------------------------------------------

    async def wait(self, name: str, timeout: float) -> RunSummary:
        run = await self._context.find_run(name)
        if run.state not in FINISHED and timeout > 0:
            handle = RunHandle(self._context.runtime, run.id)
            try:
                await handle.wait(timeout)
            except TimeoutError:
                pass
            run = await handle.info()
        return self._summary(run)

    async def watch(self, name: str) -> AsyncIterator[RunView]:
        run = await self._context.find_run(name)
        steps = self._context.declared_steps(run)
        # Only the full view knows what was taken over from a parent.
        look = run_view if run.parent else live_view
        async for newest in follow(self._store, run.id):
            if newest.state in FINISHED:
                yield await self._full_view(newest)
            else:
                yield await look(self._store, newest, self._context.now, steps)

    # --- changing ---------------------------------------------------------------------------------

    async def cancel(self, name: str, *, reason: str = "") -> Changed:
        run = await self._context.find_run(name)
        actor = self._context.actor
        await self._context.operations.cancel(run.id, actor=actor, reason=reason)
        return await self._changed(run.id)

    async def pause(self, name: str, *, reason: str = "") -> Changed:
        run = await self._context.find_run(name)
        actor = self._context.actor
        await self._context.operations.pause(run.id, actor=actor, reason=reason)
        return await self._changed(run.id)

    async def resume(self, name: str, *, attempts: int | None = None) -> Changed:
        run = await self._context.find_run(name)
        actor = self._context.actor
        await self._context.operations.resume(run.id, actor=actor, attempts=attempts)
        return await self._changed(run.id)

    async def rerun(self, name: str, *, from_step: str | None = None) -> Changed:
        run = await self._context.find_run(name)
        actor = self._context.actor
        with submitting(actor):
            handle = await self._context.operations.rerun(run.id, from_step=from_step, actor=actor)
        return await self._changed(handle.id)

    async def _changed(self, run_id: str) -> Changed:
        run = await self._context.find_run(run_id)
        return Changed(run.id, run.state)


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isdecimal() or not cursor.isascii() or int(cursor[:20]) > MAX_POSITION:
        raise InvalidInput("the cursor is not understood: give the next_cursor of the page before")
    return int(cursor)
