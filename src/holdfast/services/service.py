"""The service: what people and programs do with holdfast, whatever stands between them and it.

`services/local` does it on an open store; `holdfast.Client` asks another process for it over HTTP.
The command line and the HTTP API know only what is here, so that each use case has one shape.

Runs are named by their id, the start of it, or their idempotency key. What a caller may not see
does not exist for it: `NotFound`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from holdfast.model.tenant import Quotas
from holdfast.ports.store import LaneInfo, RunFilter
from holdfast.services.api_keys import IssuedKey, KeyView
from holdfast.services.artifacts import ArtifactView
from holdfast.services.audit import AuditView
from holdfast.services.catalogue import PipelineView
from holdfast.services.explanation import Explanation
from holdfast.services.held_locks import LockView
from holdfast.services.lanes import LaneView
from holdfast.services.projections import ProjectionView
from holdfast.services.tenants import TenantView
from holdfast.services.views import (
    DeadLetterPage,
    DeadLetterView,
    EventView,
    LogView,
    RunSummary,
    RunView,
)
from holdfast.services.webhooks import DeliveryView, WebhookView
from holdfast.services.workers import WorkerView

T = TypeVar("T")


class Page(Struct, Generic[T]):
    """A part of a list. `next_cursor` asks for the next part; without one this is the last."""

    items: list[T]
    next_cursor: str | None = None


class Accepted(Struct):
    """A run that was submitted. `created` tells a new run from one that already answered the
    request."""

    run: RunSummary
    created: bool


class Changed(Struct):
    """What a change of one run answers."""

    run: str
    state: str


class ClosedLetter(Struct):
    """What happened to one dead letter. `changed` is False when it was closed before."""

    id: str
    run: str | None
    changed: bool
    error: str | None = None


class SteppedDown(Struct):
    """Who leads a lane no more."""

    lane: str
    stepped_down: str | None


class Released(Struct):
    """A lock that was taken from its holder."""

    lock: str
    released: bool
    holder: str | None


class Submission(Struct, kw_only=True):
    """What may be said about a run, or about many, besides the input. `delay` is in seconds."""

    priority: int = 0
    delay: float = 0.0
    labels: dict[str, str] = {}
    unique: bool = False
    """Whether a live run of the pipeline, for the same tenant, answers instead of a new one."""


class Runs(Protocol):
    async def submit(
        self, pipeline: str, input: Any, *, key: str | None = None, about: Submission
    ) -> Accepted: ...

    async def submit_many(
        self,
        pipeline: str,
        inputs: Sequence[Any],
        *,
        keys: Sequence[str] | None = None,
        about: Submission,
    ) -> list[Accepted]: ...

    async def list(
        self, where: RunFilter, *, limit: int = 50, cursor: str | None = None
    ) -> Page[RunSummary]:
        """Newest first."""
        ...

    async def find(self, name: str) -> RunSummary: ...

    async def show(self, name: str) -> RunView: ...

    async def wait(self, name: str, timeout: float) -> RunSummary:
        """The run as soon as it has ended, or as it is after so many seconds."""
        ...

    def watch(self, name: str) -> AsyncIterator[RunView]:
        """The run now, then again whenever something may have changed; the last one has ended."""
        ...

    async def result(self, name: str) -> Raw:
        """The result as JSON. Raises StillRunning, RunFailed or RunCancelled when there is none."""
        ...

    async def state(self, name: str) -> Raw:
        """The state document that the projection `state_documents` writes."""
        ...

    async def artifacts(self, name: str) -> list[ArtifactView]: ...

    async def artifact(self, name: str, id: str) -> bytes: ...

    async def events(self, name: str, *, after: int = 0) -> list[EventView]:
        """The history behind an event's number."""
        ...

    async def logs(self, name: str, *, after: int = 0, limit: int = 1000) -> list[LogView]:
        """What its steps logged, behind so many lines."""
        ...

    async def explain(self, name: str) -> Explanation:
        """Why it is not running, or why it failed."""
        ...

    async def cancel(self, name: str, *, reason: str = "") -> Changed: ...

    async def pause(self, name: str, *, reason: str = "") -> Changed: ...

    async def resume(self, name: str, *, attempts: int | None = None) -> Changed: ...

    async def rerun(self, name: str, *, from_step: str | None = None) -> Changed:
        """Answers the new run."""
        ...


class DeadLetters(Protocol):
    async def list(
        self,
        *,
        tenant: str | None = None,
        pipeline: str | None = None,
        since: datetime | None = None,
        all: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[DeadLetterView]:
        """Open ones, newest first; with `all` also those that were closed."""
        ...

    async def show(self, id: str) -> DeadLetterPage: ...

    async def redrive(self, id: str) -> ClosedLetter: ...

    async def discard(self, id: str, *, reason: str = "") -> ClosedLetter: ...


class Lanes(Protocol):
    async def list(self) -> list[LaneInfo]: ...

    async def show(self, name: str) -> LaneView: ...

    async def step_down(self, name: str, *, reason: str = "") -> SteppedDown: ...


class Locks(Protocol):
    async def list(self) -> list[LockView]: ...

    async def release(self, name: str, *, reason: str = "") -> Released: ...


class Projections(Protocol):
    async def list(self) -> list[ProjectionView]: ...

    async def find(self, name: str) -> ProjectionView: ...

    async def rebuild(self, name: str) -> None: ...

    async def drop(self, name: str) -> None: ...


class Pipelines(Protocol):
    async def list(self) -> list[PipelineView]: ...

    async def show(self, name: str) -> PipelineView: ...

    async def schema(self, name: str, *, result: bool = False) -> Mapping[str, Any]:
        """The JSON Schema of a pipeline's input, or of its result."""
        ...


class TenantAdministration(Protocol):
    async def create(self, name: str, quotas: Quotas) -> TenantView: ...

    async def list(self) -> list[TenantView]: ...

    async def show(self, name: str) -> TenantView:
        """With what it uses of its quotas now."""
        ...

    async def set(
        self, name: str, *, enabled: bool | None = None, quotas: Mapping[str, int | None]
    ) -> TenantView:
        """Change what is named; None is no limit."""
        ...

    async def delete(self, name: str, *, reason: str = "") -> None: ...


class KeyAdministration(Protocol):
    async def create(
        self, tenant: str, scopes: list[str], *, name: str = "", lifetime: float | None = None
    ) -> IssuedKey: ...

    async def create_first(self) -> IssuedKey:
        """The first key of an installation. Raises Conflict if there is one."""
        ...

    async def list(self, tenant: str | None = None) -> list[KeyView]: ...

    async def rotate(self, id: str, *, overlap: float) -> IssuedKey: ...

    async def revoke(self, id: str, *, reason: str = "") -> KeyView: ...


class WebhookAdministration(Protocol):
    """Of the tenant that is seen; without one, of all."""

    async def add(self, url: str, *, events: Sequence[str] = ()) -> WebhookView:
        """Tell an endpoint what happens from now on. Its secret is in this answer only."""
        ...

    async def list(self) -> list[WebhookView]: ...

    async def remove(self, id: str) -> None: ...

    async def rotate(self, id: str) -> WebhookView:
        """With the new secret. The previous one signs beside it for a day."""
        ...

    async def enable(self, id: str) -> WebhookView:
        """Deliver again to an endpoint that had answered 410."""
        ...

    async def deliveries(self, id: str, *, state: str | None = None) -> list[DeliveryView]: ...

    async def replay(self, id: str, event: str) -> DeliveryView:
        """Deliver an event once more: the same id, the same bytes."""
        ...

    async def test(self, id: str) -> DeliveryView:
        """Send an event that means nothing, and tell what came back."""
        ...


class Service(Protocol):
    """Everything, by what it is about."""

    @property
    def runs(self) -> Runs: ...

    @property
    def dead_letters(self) -> DeadLetters: ...

    @property
    def lanes(self) -> Lanes: ...

    @property
    def locks(self) -> Locks: ...

    @property
    def projections(self) -> Projections: ...

    @property
    def pipelines(self) -> Pipelines: ...

    @property
    def tenants(self) -> TenantAdministration: ...

    @property
    def keys(self) -> KeyAdministration: ...

    @property
    def webhooks(self) -> WebhookAdministration: ...

    async def workers(self) -> list[WorkerView]: ...

    async def audit(self, *, limit: int = 100) -> list[AuditView]: ...
