"""How far each projection has come in the outbox: a record for each, moved by comparing versions."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from holdfast.model.replies import Stored
from holdfast.ports.records import Records

PREFIX = "projections/"


class Position(Struct):
    """What is stored."""

    position: int


class Cursor(Struct, frozen=True):
    """A projection, the position of the last event that it has sent, and the record's version."""

    name: str
    position: int = 0
    version: str | None = None


async def load(records: Records, name: str) -> Cursor:
    page = await records.get(f"{PREFIX}{name}")
    if not page.records:
        return Cursor(name)
    [record] = page.records
    return Cursor(name, _position(record.value), record.version)


async def move(records: Records, cursor: Cursor, position: int) -> Cursor | None:
    """The cursor behind this position; None if somebody else has moved it."""
    value = msgspec.json.encode(Position(position)).decode()
    reply = await records.put(f"{PREFIX}{cursor.name}", value, expected=cursor.version)
    return Cursor(cursor.name, position, reply.version) if isinstance(reply, Stored) else None


async def slowest(records: Records) -> int | None:
    """The position that all projections have passed; None if there is none."""
    page = await records.list(PREFIX, limit=1000)
    return min((_position(record.value) for record in page.records), default=None)


def _position(value: str) -> int:
    return msgspec.json.decode(value, type=Position).position
