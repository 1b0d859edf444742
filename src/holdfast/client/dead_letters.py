"""Dead letters of another process's service."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from holdfast.client.transport import Transport
from holdfast.services.service import ClosedLetter, Page
from holdfast.services.views import DeadLetterPage, DeadLetterView


class RemoteDeadLetters:
    def __init__(self, transport: Transport) -> None:
        self._ask = transport.ask

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
        query = {
            "pipeline": pipeline,
            "since": since and since.isoformat(),
            "all": all,
            "limit": limit,
            "cursor": cursor,
        }
        headers = {} if tenant is None else {"Holdfast-Tenant": tenant}
        return await self._ask(
            "GET", "/v1/dead-letters", Page[DeadLetterView], query=query, headers=headers
        )

    async def show(self, id: str) -> DeadLetterPage:
        return await self._ask("GET", _path(id), DeadLetterPage)

    async def redrive(self, id: str) -> ClosedLetter:
        return await self._ask("POST", f"{_path(id)}/redrive", ClosedLetter)

    async def discard(self, id: str, *, reason: str = "") -> ClosedLetter:
        body = {"reason": reason}
        return await self._ask("POST", f"{_path(id)}/discard", ClosedLetter, body=body)


def _path(id: str) -> str:
    return f"/v1/dead-letters/{quote(id)}"
