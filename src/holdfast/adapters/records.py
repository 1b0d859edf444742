"""Records kept in a store: a command to put, a command to delete, and the store's own reads."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import InvalidInput, Unwritable
from holdfast.model.commands import Command, DeleteRecord, PutRecord
from holdfast.model.ids import new_token
from holdfast.model.replies import Changed, Stored
from holdfast.ports.records import MAX_KEY, MAX_VALUE, RecordPage
from holdfast.ports.store import Store

R = TypeVar("R")


class StoreRecords:
    """`Records` of any `Store` that is open."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, key: str) -> RecordPage:
        return await self._store.record(key)

    async def put(
        self, key: str, value: str, *, expected: str | None = None, ttl: float | None = None
    ) -> Stored | Changed:
        check_record(key, value)
        return await self._apply(PutRecord(key, value, new_token(), expected, ttl))

    async def delete(self, key: str, *, expected: str) -> bool:
        return await self._apply(DeleteRecord(key, expected))

    async def _apply(self, command: Command[R]) -> R:
        [reply] = await self._store.apply([command])
        if isinstance(reply, Unwritable):
            raise reply
        return reply

    async def list(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        return await self._store.records(prefix, after=after, limit=limit)


def check_record(key: str, value: str) -> None:
    """Raises InvalidInput for what no record can be."""
    _check("key", key, MAX_KEY)
    _check(f"value of record {key!r}", value, MAX_VALUE)


def _check(name: str, text: str, most: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"the {name} is no valid text: it holds a lone surrogate") from None
    if not 0 < size <= most:
        raise InvalidInput(f"the {name} has {size} bytes: a record takes 1 to {most}")
