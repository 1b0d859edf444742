"""Dead letters on an open store."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.limits import is_text
from holdfast.ports.store import DeadLetter
from holdfast.services.local.context import ServiceContext
from holdfast.services.service import ClosedLetter, Page
from holdfast.services.views import (
    DeadLetterPage,
    DeadLetterView,
    dead_letter_page,
    dead_letter_view,
)

PAGE = 100
"""Letters of one read, with their bytes, where most may not match."""


@dataclass(frozen=True, slots=True)
class _Query:
    tenant: str | None
    pipeline: str | None
    since: float | None
    closed: bool
    """Those that are closed, too."""

    def matches(self, letter: DeadLetter) -> bool:
        return self.pipeline in (None, letter.attributes.get("pipeline"))


class LocalDeadLetters:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context

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
        own = self._context.tenant
        if own is not None and tenant not in (None, own):
            return Page([])
        query = _Query(own or tenant, pipeline, since.timestamp() if since else None, all)
        letters = await self._matching(query, limit + 1, await self._position(cursor, query))
        items = [dead_letter_view(letter) for letter in letters[:limit]]
        return Page(items, items[-1].id if len(letters) > limit else None)

    async def _position(self, cursor: str | None, query: _Query) -> tuple[float, str] | None:
        """Of the last one of the page before."""
        if cursor is None:
            return None
        letter = await self._context.store.dead_letter(cursor) if is_text(cursor) else None
        if letter is None or query.tenant not in (None, letter.tenant):
            raise InvalidInput(
                "the cursor is not understood: give the next_cursor of the page before"
            )
        return letter.created, letter.id

    async def _matching(
        self, query: _Query, count: int, behind: tuple[float, str] | None
    ) -> list[DeadLetter]:
        size = count if query.pipeline is None else PAGE
        matching: list[DeadLetter] = []
        while len(matching) < count:
            page = await self._context.store.dead_letters(
                tenant=query.tenant, open_only=not query.closed, limit=size, behind=behind
            )
            recent = [
                letter for letter in page if query.since is None or letter.created >= query.since
            ]
            matching += [letter for letter in recent if query.matches(letter)]
            if len(recent) < size:
                break
            behind = (page[-1].created, page[-1].id)
        return matching[:count]

    async def show(self, id: str) -> DeadLetterPage:
        return await dead_letter_page(self._context.store, await self._context.find_letter(id))

    async def redrive(self, id: str) -> ClosedLetter:
        letter = await self._context.find_letter(id)
        actor = self._context.actor
        return await _closed(letter, self._context.operations.redrive(letter.id, actor=actor))

    async def discard(self, id: str, *, reason: str = "") -> ClosedLetter:
        letter = await self._context.find_letter(id)
        actor = self._context.actor
        return await _closed(
            letter, self._context.operations.discard(letter.id, actor=actor, reason=reason)
        )


async def _closed(letter: DeadLetter, change: Coroutine[Any, Any, bool]) -> ClosedLetter:
    return ClosedLetter(letter.id, letter.run, await change)
