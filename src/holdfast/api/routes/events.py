"""Events: as a stream for those who follow, as JSON for everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Reader
from holdfast.api.answers import answer
from holdfast.api.documentation import documented
from holdfast.api.headers import applied_wait, preferred_wait
from holdfast.api.problems import Problem
from holdfast.api.sse import Stream, stream_answer
from holdfast.model.event import STATE_AFTER, Event
from holdfast.model.run import FINISHED
from holdfast.ports.store import Store
from holdfast.services.event_hub import Closed, EventHub, Lagging
from holdfast.services.service import Page
from holdfast.services.views import EventView, event_view

router = APIRouter(tags=["events"])

SSE = "text/event-stream"
PAGE = 500
After = Annotated[int, Query(ge=0, le=2**53, description="The number of the last event seen.")]
FirstAfter = Annotated[int | None, Query(ge=0, le=2**53, description="A position.")]
STREAM: dict[str, Any] = {"schema": {"type": "string"}}


def _documented() -> dict[str, Any]:
    route = documented(Page[EventView], description="Events; as a stream if that is asked for.")
    route["responses"][200]["content"][SSE] = STREAM
    return route


@router.get("/v1/runs/{run}/events", **_documented())
async def run_events(request: Request, run: str, access: Reader, after: After = 0) -> Response:
    """The history of a run behind `after`. With `Accept: text/event-stream` it is a stream that
    goes on until the run has ended (`event: end`); `Last-Event-ID` says where to go on. Otherwise
    `Prefer: wait=N` waits up to N seconds for the next event."""
    service = access.service
    run = (await service.runs.find(run)).id
    if not _wants_stream(request):
        events = await _wait_for_events(request, run, access, after)
        headers = applied_wait(preferred_wait(request))
        return answer(Page([event_view(event) for event in events]), headers=headers)
    last = _last_event_id(request, after) or 0
    store = access.holdfast.store

    async def stored(behind: int) -> AsyncIterator[list[Event]]:
        yield await store.history(run)

    async def stream() -> AsyncIterator[bytes]:
        async with _hub(request).follow(run=run) as follower:
            lines = Stream(follower, stored, lambda event: event.seq, last, _is_last)
            async for line in lines.run():
                yield line

    return stream_answer(stream())


def _is_last(event: Event) -> bool:
    return STATE_AFTER.get(event.type) in FINISHED


async def _wait_for_events(request: Request, run: str, access: Reader, after: int) -> list[Event]:
    store, wait = access.holdfast.store, preferred_wait(request)
    events = (await store.history(run))[after:]
    if events or not wait:
        return events
    async with _hub(request).follow(run=run) as follower:
        events = (await store.history(run))[after:]
        if not events:
            try:
                await follower.next(wait)
            except (Lagging, Closed):
                pass
            events = (await store.history(run))[after:]
    return events


@router.get("/v1/events", **_documented())
async def all_events(request: Request, access: Reader, after: FirstAfter = None) -> Response:
    """The events of all runs of the tenant, behind a position; `next_cursor` is that of the last
    one. As a stream it goes on without end, and begins with what happens from now on unless `after`
    or `Last-Event-ID` say otherwise."""
    pages = _EventPages(access.holdfast.store, access.sees)
    if not _wants_stream(request):
        events = await pages.next(after or 0)
        next_cursor = str(events[-1].position) if events else None
        return answer(Page([event_view(event) for event in events], next_cursor))
    last = _last_event_id(request, after)

    async def stream() -> AsyncIterator[bytes]:
        hub = _hub(request)
        async with hub.follow(tenant=access.sees) as follower:
            begin = hub.position if last is None else last
            lines = Stream(follower, pages.behind, lambda event: event.position, begin)
            async for line in lines.run():
                yield line

    return stream_answer(stream())


class _EventPages:
    """The outbox as one tenant sees it; None: all of it."""

    def __init__(self, store: Store, tenant: str | None) -> None:
        self._store = store
        self._tenant = tenant

    async def behind(self, position: int) -> AsyncIterator[list[Event]]:
        while events := await self.next(position):
            yield events
            position = events[-1].position

    async def next(self, position: int) -> list[Event]:
        while events := await self._store.outbox(position, PAGE):
            visible = [event for event in events if self._tenant in (None, event.tenant)]
            if visible:
                return visible
            position = events[-1].position
        return []


def _hub(request: Request) -> EventHub:
    return request.app.state.hub


def _wants_stream(request: Request) -> bool:
    return SSE in request.headers.get("accept", "")


def _last_event_id(request: Request, after: int | None) -> int | None:
    last_id = request.headers.get("last-event-id")
    if last_id is None or last_id == "":
        return after
    if not last_id.isascii() or not last_id.isdigit() or len(last_id) > 18:
        raise Problem(422, "invalid-input", "Last-Event-ID is the id of an event of this stream")
    return int(last_id)
