"""Projections on an open store."""

from __future__ import annotations

from holdfast.services.audit import write_entry
from holdfast.services.local.context import ServiceContext
from holdfast.services.projections import (
    ProjectionView,
    drop_projection,
    find_projection,
    list_projections,
    rebuild_projection,
)


class LocalProjections:
    def __init__(self, context: ServiceContext) -> None:
        self._store = context.store
        self._records = context.runtime.records
        self._actor = context.actor

    async def list(self) -> list[ProjectionView]:
        return await list_projections(self._store, self._records)

    async def find(self, name: str) -> ProjectionView:
        return await find_projection(self._store, self._records, name)

    async def rebuild(self, name: str) -> None:
        await rebuild_projection(self._records, name)
        await write_entry(self._records, self._actor, "projection.rebuild", name)

    async def drop(self, name: str) -> None:
        await drop_projection(self._store, self._records, name)
        await write_entry(self._records, self._actor, "projection.drop", name)
