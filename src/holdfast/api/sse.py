"""Server-sent events: a stream that says where it is, so that whoever loses it goes on there."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
from starlette.responses import StreamingResponse

from holdfast.engine.publishing import committed_event
from holdfast.errors import Transient
from holdfast.model.cloudevent import to_attributes
from holdfast.model.event import Event
from holdfast.model.webhook import event_body
from holdfast.services.event_hub import Closed, Follower, Lagging

log = logging.getLogger("holdfast.api")

SILENCE = 15.0
"""Seconds after which a silent stream says that it is there."""
LONGEST = 600.0
"""Seconds after which a stream ends and the client opens the next: for load balancers, and so that
connections find their way to new processes."""
HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "Connection": "keep-alive",
}
RETRY = b"retry: 3000\n\n"
PING = b": ping\n\n"
END = b"event: end\ndata: {}\n\n"

Stored = Callable[[int], AsyncIterator[list[Event]]]
"""The events that are stored, page by page; at least those behind a place."""
Place = Callable[[Event], int]
"""What of an event tells its place: its number in the run, or its position among all."""


class Stream:
    """What is stored behind a place, then what comes, each event once."""

    def __init__(
        self,
        follower: Follower,
        stored: Stored,
        position: Place,
        after: int,
        is_last: Callable[[Event], bool] = lambda event: False,
    ) -> None:
        self._follower = follower
        self._stored = stored
        self._position = position
        self._sent = after
        self._is_last = is_last

    async def run(self) -> AsyncIterator[bytes]:
        """Ends after the last event of a run (with `end`); when the process ends, and after
        `LONGEST` seconds, so that the client comes again."""
        yield RETRY
        try:
            async for events in self._batches():
                yield b"".join(self._new(events)) or PING
                # Only the last one of a batch: a run that failed may have been resumed since.
                if events and self._is_last(events[-1]):
                    yield END
                    return
        except Closed:
            return

    def _new(self, events: list[Event]) -> Iterator[bytes]:
        for event in events:
            if self._position(event) > self._sent:
                self._sent = self._position(event)
                yield encode(event, self._sent)

    async def _batches(self) -> AsyncIterator[list[Event]]:
        until = time.monotonic() + LONGEST
        is_behind = True
        while time.monotonic() < until:
            if is_behind:
                is_behind = False
                async for events in self._stored(self._sent):
                    yield events
            try:
                yield await self._follower.next(SILENCE)
            except Lagging:
                is_behind = True


def encode(event: Event, position: int) -> bytes:
    """An event of the stream: a CloudEvent."""
    attributes = to_attributes(committed_event(event), "local")
    data = event_body(attributes, msgspec.Raw(event.data.encode()))
    return f"id: {position}\nevent: {attributes['ce-type']}\ndata: {data}\n\n".encode()


def stream_answer(stream: AsyncIterator[bytes]) -> StreamingResponse:
    """It ends when the store is away, from the beginning on: browsers come again after a stream
    that ended, and after an error they do not."""
    return StreamingResponse(_ended(stream), headers=HEADERS, media_type="text/event-stream")


async def _ended(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for line in stream:
            yield line
    except Transient as error:
        log.warning("a stream of events ends: %s", error)
