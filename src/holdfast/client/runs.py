"""Runs of another process's service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw

from holdfast.client.events import EventReader
from holdfast.client.transport import Transport
from holdfast.errors import StillRunning, StoreUnavailable
from holdfast.model.run import FINISHED, RunState
from holdfast.ports.store import RunFilter
from holdfast.services.artifacts import ArtifactView
from holdfast.services.explanation import Explanation
from holdfast.services.lookup import LISTED, the_only
from holdfast.services.service import Accepted, Changed, Page, Submission
from holdfast.services.views import EventView, LogView, RunSummary, RunView

MAX_WAIT = 60.0
"""Seconds that a service lets a request wait."""
RECONNECT = 1.0
"""Before a stream that broke is opened again, in seconds."""
REFRESH = 0.5
"""Between two looks at a run that is watched, in seconds."""


def path_of(run: str, more: str = "") -> str:
    return f"/v1/runs/{quote(run, safe='')}{more}"


class RemoteRuns:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask
        self._transport = transport

    async def _path(self, name: str, more: str = "") -> str:
        """Of a run by its name. No path can carry a key with a slash: its run is looked for."""
        if "/" in name or name in (".", ".."):
            runs = (await self.list(RunFilter(key=name), limit=LISTED + 1)).items
            name = the_only(name, runs).id
        return path_of(name, more)

    async def submit(
        self, pipeline: str, input: Any, *, key: str | None = None, about: Submission
    ) -> Accepted:
        # The key is in the body, not in a header: a header can't carry any text.
        body = {**_about(about), "input": input, "key": key}
        path = f"/v1/pipelines/{quote(pipeline, safe='')}/runs"
        return await self._ask("POST", path, Accepted, body=body, repeatable=key is not None)

    async def submit_many(
        self,
        pipeline: str,
        inputs: Sequence[Any],
        *,
        keys: Sequence[str] | None = None,
        about: Submission,
    ) -> list[Accepted]:
        body = {**_about(about), "inputs": [*inputs], "keys": None if keys is None else [*keys]}
        path = f"/v1/pipelines/{quote(pipeline, safe='')}/runs/batch"
        page = await self._ask("POST", path, Page[Accepted], body=body, repeatable=keys is not None)
        return page.items

    async def list(
        self, where: RunFilter, *, limit: int = 50, cursor: str | None = None
    ) -> Page[RunSummary]:
        query = {
            "pipeline": where.pipeline,
            "state": where.state,
            "lane": where.lane,
            "key": where.key,
            "id_prefix": where.id_prefix,
            "label": [f"{name}={value}" for name, value in where.labels.items()],
            "limit": limit,
            "cursor": cursor,
        }
        headers = {} if where.tenant is None else {"Holdfast-Tenant": where.tenant}
        return await self._ask("GET", "/v1/runs", Page[RunSummary], query=query, headers=headers)

    async def find(self, name: str) -> RunSummary:
        return (await self.show(name)).run

    async def show(self, name: str) -> RunView:
        return await self._ask("GET", await self._path(name), RunView)

    async def wait(self, name: str, timeout: float) -> RunSummary:
        until = time.monotonic() + timeout
        while True:
            wait = max(0.0, min(MAX_WAIT, until - time.monotonic()))
            headers = {"Prefer": f"wait={wait:.0f}"}
            view = await self._ask(
                "GET", await self._path(name), RunView, headers=headers, wait=wait
            )
            if view.state in FINISHED or time.monotonic() >= until - 0.5:
                return view.run

    async def watch(self, name: str) -> AsyncIterator[RunView]:
        """Progress is no event, so a run that is under way is looked at now and then."""
        view = await self.show(name)
        yield view
        while view.state not in FINISHED:
            after = view.history[-1].seq if view.history else 0
            headers = {"Prefer": "wait=1"} if view.state != RunState.RUNNING else {}
            await self._events(view.run.id, after, headers)
            await asyncio.sleep(REFRESH)
            try:
                view = await self.show(view.run.id)
            except StoreUnavailable:
                continue
            yield view

    async def result(self, name: str) -> Raw:
        return Raw(await self._transport.send("GET", await self._path(name, "/result")))

    async def result_value(self, name: str, timeout: float | None) -> Any:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = MAX_WAIT if until is None else until - time.monotonic()
            await self.wait(name, max(0.0, min(MAX_WAIT, left)))
            try:
                return msgspec.json.decode(await self.result(name))
            except StillRunning:
                if until is not None and time.monotonic() >= until:
                    raise

    async def state(self, name: str) -> Raw:
        return Raw(await self._transport.send("GET", await self._path(name, "/state")))

    async def artifacts(self, name: str) -> list[ArtifactView]:
        return (
            await self._ask("GET", await self._path(name, "/artifacts"), Page[ArtifactView])
        ).items

    async def artifact(self, name: str, id: str) -> bytes:
        return await self._transport.send("GET", await self._path(name, f"/artifacts/{quote(id)}"))

    async def events(self, name: str, *, after: int = 0) -> list[EventView]:
        return await self._events(name, after, {})

    async def _events(self, name: str, after: int, headers: dict[str, str]) -> list[EventView]:
        path, query = await self._path(name, "/events"), {"after": after}
        page = await self._ask("GET", path, Page[EventView], query=query, headers=headers)
        return page.items

    async def follow(self, name: str, *, after: int = 0) -> AsyncIterator[EventView]:
        """The events as they happen, until the run has ended."""
        reader = EventReader(after)
        while not reader.has_ended:
            try:
                headers = {"Last-Event-ID": str(reader.last)}
                async with self._transport.stream(
                    await self._path(name, "/events"), headers
                ) as lines:
                    async for event in reader.read(lines):
                        yield event
            except StoreUnavailable:
                if reader.last == after:
                    raise  # it has never worked
            if not reader.has_ended:
                await asyncio.sleep(RECONNECT)

    async def logs(self, name: str, *, after: int = 0, limit: int = 1000) -> list[LogView]:
        query = {"after": after, "limit": limit}
        return (
            await self._ask("GET", await self._path(name, "/logs"), Page[LogView], query=query)
        ).items

    async def explain(self, name: str) -> Explanation:
        return await self._ask("GET", await self._path(name, "/explanation"), Explanation)

    async def cancel(self, name: str, *, reason: str = "") -> Changed:
        return await self._change(name, "cancel", reason=reason)

    async def pause(self, name: str, *, reason: str = "") -> Changed:
        return await self._change(name, "pause", reason=reason)

    async def resume(self, name: str, *, attempts: int | None = None) -> Changed:
        return await self._change(name, "resume", attempts=attempts)

    async def rerun(self, name: str, *, from_step: str | None = None) -> Changed:
        return await self._change(name, "rerun", from_step=from_step)

    async def _change(self, name: str, verb: str, **body: Any) -> Changed:
        return await self._ask("POST", await self._path(name, f"/{verb}"), Changed, body=body)


def _about(about: Submission) -> dict[str, Any]:
    return {name: getattr(about, name) for name in Submission.__struct_fields__}
