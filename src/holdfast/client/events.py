"""Reading a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.cloudevent import TYPE_PREFIX
from holdfast.services.views import EventView


class _CloudEvent(Struct):
    id: str
    type: str
    time: datetime
    sequence: str
    data: Any = None


_decode = msgspec.json.Decoder(_CloudEvent).decode


class EventReader:
    """Knows where it is in the stream, over several connections."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.has_ended = False

    async def read(self, lines: AsyncIterator[str]) -> AsyncIterator[EventView]:
        kind, data = "", ""
        async for line in lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif not line and kind:
                if kind == "end":
                    self.has_ended = True
                    return
                event = _view(data)
                self.last = event.seq
                yield event
                kind, data = "", ""


def _view(data: str) -> EventView:
    event = _decode(data)
    kind = event.type.removeprefix(f"{TYPE_PREFIX}.").removesuffix(".v1")
    return EventView(event.id, int(event.sequence), kind, event.time, event.data)
