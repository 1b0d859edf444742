"""Dead letters on an open store."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.ports.store import DeadLetter
from holdfast.services.local.context import ServiceContext
from holdfast.services.service import ClosedLetter, Page
from holdfast.services.views import (
    DeadLetterPage,
    DeadLetterView,
    dead_letter_page,
    dead_letter_view,
)

ALL = 1_000_000


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
        looked_at = ALL if cursor or pipeline or since else limit + 1
        letters = await self._context.store.dead_letters(
            tenant=own or tenant, open_only=not all, limit=looked_at
        )
        if pipeline is not None:
            letters = [entry for entry in letters if entry.attributes.get("pipeline") == pipeline]
        if since is not None:
            letters = [entry for entry in letters if entry.created >= since.timestamp()]
        letters = _behind(letters, cursor)
        items = [dead_letter_view(letter) for letter in letters[:limit]]
        return Page(items, items[-1].id if len(letters) > limit else None)

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


def _behind(letters: list[DeadLetter], cursor: str | None) -> list[DeadLetter]:
    if cursor is None:
        return letters
    ids = [letter.id for letter in letters]
    if cursor not in ids:
        raise InvalidInput("the cursor is not understood: give the next_cursor of the page before")
    return letters[ids.index(cursor) + 1 :]


async def _closed(letter: DeadLetter, change: Coroutine[Any, Any, bool]) -> ClosedLetter:
    return ClosedLetter(letter.id, letter.run, await change)
