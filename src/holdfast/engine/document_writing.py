"""Writing what document projections make of runs: at events by the relay, on progress by the worker
that has the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.engine import cursors
from holdfast.engine.attempt import Attempt
from holdfast.engine.failures import describe
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.engine.snapshots import Snapshots
from holdfast.engine.supervision import end
from holdfast.errors import Damaged, Transient
from holdfast.model.commands import SaveProgress, Stale
from holdfast.model.event import Event
from holdfast.model.pipeline import Pipeline
from holdfast.model.projection import (
    ArtifactBody,
    Document,
    DocumentProjection,
    body_bytes,
    document_version,
)
from holdfast.ports.documents import Documents

log = logging.getLogger("holdfast.documents")

REFRESH_INTERVAL = 0.5
"""Between two refreshes of one run's documents, in seconds, at least."""


class DocumentTarget:
    """A document projection and where its documents go."""

    kind = "documents"
    history = True

    def __init__(
        self,
        projection: DocumentProjection,
        documents: Documents,
        runtime: Runtime,
        pipelines: Mapping[str, Pipeline[Any]],
        open_url: Callable[[str], Documents] | None = None,
    ) -> None:
        """`open_url` gives the documents of a URL that a document names itself."""
        self.name = projection.name
        self.projection = projection
        self._documents = documents
        self._open_url = open_url
        self._runtime = runtime
        self._pipelines = pipelines
        self._snapshots = Snapshots(runtime.store, runtime.payloads)

    def select(self, events: Sequence[Event]) -> list[Event]:
        """The last event of each run: a document shows the run as it is now, whatever led there."""
        last = {event.run: event for event in events if self.projection.concerns(event)}
        return sorted(last.values(), key=lambda event: event.position)

    async def deliver(self, event: Event, generation: int) -> None:
        await self.write(event.run, event.pipeline, generation)

    async def write(self, run: str, pipeline: str, generation: int, refresh: int = 0) -> None:
        """Bring the documents of a run up to date, wherever they are older than it."""
        declared = self._pipelines.get(pipeline)
        snapshot = await self._snapshots.read(
            run,
            self._runtime.clock.now(),
            tuple(declared.steps) if declared is not None else (),
            results=self.projection.results,
        )
        if snapshot is None:
            return
        version = document_version(generation, snapshot.run, refresh)
        for change in self.projection.documents(snapshot):
            documents = self._destination(change.to)
            if isinstance(change, Document):
                body = await self._body(change)
                await documents.put(change.key, body, version=version, ttl=change.ttl)
            else:
                await documents.delete(change.key, version=version)

    def _destination(self, to: Any) -> Documents:
        if isinstance(to, str):
            assert self._open_url is not None, "only an app opens URLs"
            return self._open_url(to)
        return self._documents if to is None else to

    async def _body(self, document: Document) -> bytes:
        source = document.body
        if not isinstance(source, ArtifactBody):
            return body_bytes(source)
        data = await self._runtime.payloads.get(source.artifact)
        if data is None:
            raise Damaged(
                f"document {document.key!r}: artifact {source.artifact!r} is not in the blob store"
            )
        return data if source.convert is None else await asyncio.to_thread(source.convert, data)


class Refresher:
    """Shows the progress of this worker's runs in their documents, at most twice a second each.

    A refresh that fails is left to the relay, which repairs documents at the run's next event."""

    def __init__(self, targets: Iterable[DocumentTarget], runtime: Runtime) -> None:
        self._targets = [target for target in targets if target.projection.on_progress]
        self._runtime = runtime
        self._waiting: dict[Lease, tuple[Attempt, str]] = {}
        self._tasks: dict[Lease, asyncio.Task[None]] = {}

    def concerns(self, attempt: Attempt) -> bool:
        return bool(self._targets_of(attempt))

    def refresh(self, attempt: Attempt, progress: str) -> None:
        """Store the progress, then show it."""
        lease = attempt.gate.lease
        self._waiting[lease] = (attempt, progress)
        if lease not in self._tasks:
            task = self._tasks[lease] = asyncio.create_task(self._follow(lease))
            task.add_done_callback(lambda _: self._tasks.pop(lease, None))

    async def stop(self) -> None:
        await end(self._tasks.values())

    def _targets_of(self, attempt: Attempt) -> list[DocumentTarget]:
        pipeline = attempt.claimed.pipeline
        return [t for t in self._targets if t.projection.pipeline in (None, pipeline)]

    async def _follow(self, lease: Lease) -> None:
        """Refresh for as long as the attempt lasts: the numbers of refreshes must rise."""
        refresh = 0
        attempt = self._waiting[lease][0]
        while lease.trusted and not attempt.over:
            if (waiting := self._waiting.pop(lease, None)) is not None:
                refresh += 1
                await self._refresh(*waiting, refresh)
            await asyncio.sleep(REFRESH_INTERVAL)
        self._waiting.pop(lease, None)

    async def _refresh(self, attempt: Attempt, progress: str, refresh: int) -> None:
        run, epoch = attempt.gate.run, attempt.gate.epoch
        try:
            reply = await self._runtime.committer.send(SaveProgress(run, epoch, progress))
        except Transient as error:
            log.warning("run %s: its progress was not stored: %s", run, describe(error))
            return
        if not isinstance(reply, Stale):
            targets = self._targets_of(attempt)
            await asyncio.gather(*[self._write(t, attempt, refresh) for t in targets])

    async def _write(self, target: DocumentTarget, attempt: Attempt, refresh: int) -> None:
        claimed = attempt.claimed
        try:
            cursor = await cursors.load(self._runtime.records, target.name)
            generation = cursor.state.generation if cursor is not None else 0
            await target.write(claimed.run, claimed.pipeline, generation, refresh)
        except Exception as error:
            log.warning(
                "projection %s: the documents of run %s were not refreshed: %s",
                target.name,
                claimed.run,
                describe(error),
            )
