"""How far each projection has come in the outbox: a record for each, moved by comparing
versions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.damage import unless_damaged
from holdfast.model.replies import Stored
from holdfast.ports.records import Record, Records

PREFIX = "projections/"


class CursorState(Struct, frozen=True, omit_defaults=True):
    """What is stored of a projection."""

    position: int = 0
    """Of the last event that it has sent."""
    kind: str = "messages"
    generation: int = 0
    """How often it was rebuilt."""
    error: str | None = None
    """What went wrong last, and when."""
    failed: float | None = None
    failing: bool = False
    """Whether it has not got on since."""


_decode = msgspec.json.Decoder(CursorState).decode


class Cursor(Struct, frozen=True):
    """A registered projection, and the version that a writer has to know to move it."""

    name: str
    state: CursorState
    version: str
    updated: float

    @property
    def position(self) -> int:
        return self.state.position


async def load(records: Records, name: str) -> Cursor | None:
    """None: nobody has registered a projection of that name."""
    page = await records.get(f"{PREFIX}{name}")
    return _cursor(page.records[0]) if page.records else None


async def register(records: Records, name: str, kind: str, position: int) -> Cursor:
    """Begin behind a position, unless it is registered already: then go on from there."""
    state = CursorState(position, kind)
    await records.put(f"{PREFIX}{name}", _encoded(state))
    cursor = await load(records, name)
    return cursor if cursor is not None else await register(records, name, kind, position)


async def change(records: Records, cursor: Cursor, **changes: Any) -> Cursor | None:
    """The cursor with other values; None if somebody else has changed it."""
    state = msgspec.structs.replace(cursor.state, **changes)
    key = f"{PREFIX}{cursor.name}"
    reply = await records.put(key, _encoded(state), expected=cursor.version)
    if not isinstance(reply, Stored):
        return None
    return Cursor(cursor.name, state, reply.version, reply.now)


async def move(records: Records, cursor: Cursor, position: int, **changes: Any) -> Cursor | None:
    """The cursor behind this position; None if somebody else has moved it."""
    return await change(records, cursor, position=position, failing=False, **changes)


async def remove(records: Records, cursor: Cursor) -> bool:
    """Forget a projection: retention does not wait for it any more."""
    return await records.delete(f"{PREFIX}{cursor.name}", expected=cursor.version)


async def forget(records: Records, name: str) -> None:
    """Forget a projection, whoever moves its cursor meanwhile."""
    while (cursor := await load(records, name)) is not None:
        await remove(records, cursor)


async def registered(records: Records) -> list[Cursor]:
    page = await records.list(PREFIX, limit=1000)
    return [_cursor(record) for record in page.records]


async def slowest(records: Records) -> int | None:
    """The position that all projections have passed; None if there is none."""
    return min((cursor.position for cursor in await registered(records)), default=None)


def _cursor(record: Record) -> Cursor:
    """One that can't be read begins anew: everything is sent once more, with the same ids, and
    retention waits for it."""
    state = unless_damaged(_decode, record.value)
    if state is None:
        state = CursorState(error="how far it was can't be read: it begins anew", failing=True)
    return Cursor(record.key.removeprefix(PREFIX), state, record.version, record.updated)


def _encoded(state: CursorState) -> str:
    return msgspec.json.encode(state).decode()
