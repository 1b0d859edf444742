"""`AsyncClient`: the service of another process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from holdfast.client.dead_letters import RemoteDeadLetters
from holdfast.client.installation import (
    RemoteLanes,
    RemoteLocks,
    RemotePipelines,
    RemoteProjections,
)
from holdfast.client.runs import RemoteRuns
from holdfast.client.tenants import RemoteKeys, RemoteTenants
from holdfast.client.transport import Transport
from holdfast.client.webhooks import RemoteWebhooks
from holdfast.services.audit import AuditView
from holdfast.services.service import Accepted, Page, Submission
from holdfast.services.views import EventView, RunSummary
from holdfast.services.workers import WorkerView


class AsyncClient:
    """All that a service does, by what it is about: `client.runs`, `client.dead_letters`, …; and
    the few things that every program needs, here. `tenant` is for administrators."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        tenant: str | None = None,
    ) -> None:
        transport = self._transport = Transport(url, api_key, timeout=timeout, tenant=tenant)
        self.runs = RemoteRuns(transport)
        self.dead_letters = RemoteDeadLetters(transport)
        self.lanes = RemoteLanes(transport)
        self.locks = RemoteLocks(transport)
        self.projections = RemoteProjections(transport)
        self.pipelines = RemotePipelines(transport)
        self.tenants = RemoteTenants(transport)
        self.keys = RemoteKeys(transport)
        self.webhooks = RemoteWebhooks(transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    # --- what every program needs -----------------------------------------------------------------

    async def submit(
        self,
        pipeline: str,
        input: Any = None,
        *,
        key: str | None = None,
        priority: int = 0,
        delay: float = 0.0,
        labels: Mapping[str, str] | None = None,
    ) -> Accepted:
        """Accept a run. It is durable when this returns. With a key a lost answer is no trouble:
        the request is sent again, and finds the same run."""
        about = Submission(priority=priority, delay=delay, labels=dict(labels or {}))
        return await self.runs.submit(pipeline, input, key=key, about=about)

    async def wait(self, run: str, timeout: float) -> RunSummary:
        """The run as soon as it has ended, or as it is after so many seconds."""
        return await self.runs.wait(run, timeout)

    async def result(self, run: str, timeout: float | None = None) -> Any:
        """The result of a run, once it has one. Raises RunFailed, RunCancelled, or StillRunning
        when the time is up."""
        return await self.runs.result_value(run, timeout)

    def watch(self, run: str, *, after: int = 0) -> AsyncIterator[EventView]:
        """The events of a run as they happen, until it has ended. A connection that breaks is
        opened again, where it was."""
        return self.runs.follow(run, after=after)

    async def upload(
        self, path: str, form: Mapping[str, str], files: Mapping[str, tuple[str, bytes]]
    ) -> tuple[Mapping[str, str], bytes]:
        """Send a form with files (name and bytes of each) to a route of an app. Gives the answer's
        headers and bytes."""
        return await self._transport.upload(path, form, files)

    async def download(self, path: str) -> bytes:
        """What a route of an app answers."""
        return await self._transport.send("GET", path)

    async def workers(self) -> list[WorkerView]:
        return (await self._transport.ask("GET", "/v1/workers", Page[WorkerView])).items

    async def audit(self, *, limit: int = 100) -> list[AuditView]:
        query = {"limit": limit}
        return (await self._transport.ask("GET", "/v1/audit", Page[AuditView], query=query)).items
