"""Lanes on an open store."""

from __future__ import annotations

from holdfast.ports.store import LaneInfo
from holdfast.services.lanes import LaneView, lane_view
from holdfast.services.local.context import ServiceContext
from holdfast.services.service import SteppedDown


class LocalLanes:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list(self) -> list[LaneInfo]:
        return await self._context.store.lanes()

    async def show(self, name: str) -> LaneView:
        return await lane_view(self._context.store, self._context.runtime.records, name)

    async def step_down(self, name: str, *, reason: str = "") -> SteppedDown:
        lanes = {lane.name: lane.leader for lane in await self.list()}
        actor = self._context.actor
        await self._context.operations.step_down(name, actor=actor, reason=reason)
        return SteppedDown(name, lanes.get(name))
