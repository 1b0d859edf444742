"""The service on an open store, for everything or for what belongs to one tenant."""

from __future__ import annotations

from holdfast.services.audit import AuditView, audit_views
from holdfast.services.local.context import ServiceContext
from holdfast.services.local.dead_letters import LocalDeadLetters
from holdfast.services.local.lanes import LocalLanes
from holdfast.services.local.locks import LocalLocks
from holdfast.services.local.projections import LocalProjections
from holdfast.services.local.runs import LocalRuns
from holdfast.services.local.tenants import LocalKeys, LocalTenants
from holdfast.services.local.webhooks import LocalWebhooks
from holdfast.services.workers import WorkerView, list_workers

__all__ = ["LocalService", "ServiceContext"]


class LocalService:
    """All of it, for one caller."""

    def __init__(self, context: ServiceContext) -> None:
        self.context = context
        self.runs = LocalRuns(context)
        self.dead_letters = LocalDeadLetters(context)
        self.lanes = LocalLanes(context)
        self.locks = LocalLocks(context)
        self.projections = LocalProjections(context)
        self.pipelines = context.catalogue
        self.tenants = LocalTenants(context)
        self.keys = LocalKeys(context)
        self.webhooks = LocalWebhooks(context)

    async def workers(self) -> list[WorkerView]:
        return await list_workers(self.context.runtime.records)

    async def audit(self, *, limit: int = 100) -> list[AuditView]:
        return await audit_views(self.context.store, limit=limit)
