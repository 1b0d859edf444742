"""Lanes, locks, projections and pipelines of another process's service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from holdfast.client.transport import Transport
from holdfast.ports.store import LaneInfo
from holdfast.services.catalogue import PipelineView
from holdfast.services.held_locks import LockView
from holdfast.services.lanes import LaneView
from holdfast.services.projections import ProjectionView
from holdfast.services.service import Page, Released, SteppedDown


def _part(name: str) -> str:
    return quote(name, safe="")


class RemoteLanes:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask

    async def list(self) -> list[LaneInfo]:
        return (await self._ask("GET", "/v1/lanes", Page[LaneInfo])).items

    async def show(self, name: str) -> LaneView:
        return await self._ask("GET", f"/v1/lanes/{_part(name)}", LaneView)

    async def step_down(self, name: str, *, reason: str = "") -> SteppedDown:
        path = f"/v1/lanes/{_part(name)}/step-down"
        return await self._ask("POST", path, SteppedDown, body={"reason": reason})


class RemoteLocks:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask

    async def list(self) -> list[LockView]:
        return (await self._ask("GET", "/v1/locks", Page[LockView])).items

    async def release(self, name: str, *, reason: str = "") -> Released:
        path = f"/v1/locks/{quote(name)}/release"
        return await self._ask("POST", path, Released, body={"reason": reason})


class RemoteProjections:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask
        self._send = transport.send

    async def list(self) -> list[ProjectionView]:
        return (await self._ask("GET", "/v1/projections", Page[ProjectionView])).items

    async def find(self, name: str) -> ProjectionView:
        return await self._ask("GET", f"/v1/projections/{_part(name)}", ProjectionView)

    async def rebuild(self, name: str) -> None:
        await self._send("POST", f"/v1/projections/{_part(name)}/rebuild")

    async def drop(self, name: str) -> None:
        await self._send("DELETE", f"/v1/projections/{_part(name)}")


class RemotePipelines:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask

    async def list(self) -> list[PipelineView]:
        return (await self._ask("GET", "/v1/pipelines", Page[PipelineView])).items

    async def show(self, name: str) -> PipelineView:
        return await self._ask("GET", f"/v1/pipelines/{_part(name)}", PipelineView)

    async def schema(self, name: str, *, result: bool = False) -> Mapping[str, Any]:
        query = {"of": "result" if result else "input"}
        path = f"/v1/pipelines/{_part(name)}/schema"
        return await self._ask("GET", path, dict[str, Any], query=query)
