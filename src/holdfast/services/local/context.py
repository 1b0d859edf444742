"""What every part of the local service works with: the engine, who calls, and what that caller may
see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine.runtime import Runtime
from holdfast.errors import NotFound
from holdfast.model.leadership import Leaders
from holdfast.model.pipeline import Pipeline
from holdfast.model.projection import RunSnapshot
from holdfast.model.run import Run
from holdfast.ports.store import DeadLetter, Store
from holdfast.services.api_keys import ApiKeys
from holdfast.services.local.pipelines import LocalPipelines
from holdfast.services.lookup import find_run
from holdfast.services.operations import Operations
from holdfast.services.tenants import Tenants
from holdfast.services.webhooks import WebhookOptions


def _no_pipeline(name: str) -> Pipeline[Any] | None:
    return None


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """`tenant` is whose runs and dead letters are seen; None: everybody's. `actor` is who makes
    changes: it is kept with each of them."""

    runtime: Runtime
    pipelines: Mapping[str, Pipeline[Any]]
    operations: Operations
    tenants: Tenants
    keys: ApiKeys
    tenant: str | None = None
    actor: str = "api"
    submits_for: str = "default"
    """The tenant of new runs, where `tenant` is None."""
    leaders: Leaders = field(default_factory=Leaders)
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each pipeline was found."""
    find_pipeline: Callable[[str], Pipeline[Any] | None] = _no_pipeline
    """Pipelines that are not executed here, and whose runs can be looked at."""
    state_document: Callable[[RunSnapshot], bytes] | None = None
    """A run as the projection `state_documents` writes it."""
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)

    @property
    def store(self) -> Store:
        return self.runtime.store

    @property
    def now(self) -> float:
        return self.runtime.clock.now()

    async def find_run(self, name: str) -> Run:
        return await find_run(self.store, name, tenant=self.tenant)

    async def find_letter(self, id: str) -> DeadLetter:
        """By its id, or by the name of the run that it is about."""
        letter = await self.store.dead_letter(id)
        if letter is None:
            try:
                run = await self.find_run(id.removeprefix("run:"))
            except NotFound:
                pass
            else:
                letter = await self.store.dead_letter(f"run:{run.id}")
        if letter is None or self.tenant not in (None, letter.tenant):
            raise NotFound(f"no dead letter {id!r}; `holdfast dlq list` shows what there is")
        return letter

    @property
    def catalogue(self) -> LocalPipelines:
        return LocalPipelines(self.pipelines, self.origins)

    def declared_steps(self, run: Run) -> list[str]:
        """The steps of a run's pipeline in order, if it is known here."""
        pipeline = self.pipelines.get(run.pipeline) or self.find_pipeline(run.pipeline)
        return list(pipeline.steps) if pipeline is not None else []
