"""Projections as people see and change them: how far each has come, what keeps it, once more from
the beginning, no more at all."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from holdfast.engine import cursors
from holdfast.engine.cursors import Cursor
from holdfast.engine.relay import PROJECTION
from holdfast.errors import Conflict, NotFound
from holdfast.ports.records import Records
from holdfast.ports.store import Store
from holdfast.services.views import at

COUNTED = 1000
"""Events behind a cursor that are counted; with more of them the answer is this number."""


class ProjectionView(Struct):
    """`behind` is how many events it has not looked at yet (at most `COUNTED`), `oldest` the time
    of the first of them; `holder` is who runs it now."""

    name: str
    kind: str
    position: int
    behind: int
    oldest: datetime | None
    failing: bool
    error: str | None
    failed: datetime | None
    holder: str | None
    rebuilt: int


async def list_projections(store: Store, records: Records) -> list[ProjectionView]:
    holders = await _holders(store)
    return [
        await _view(store, cursor, holders.get(cursor.name))
        for cursor in await cursors.registered(records)
    ]


async def find_projection(store: Store, records: Records, name: str) -> ProjectionView:
    holders = await _holders(store)
    return await _view(store, await _load(records, name), holders.get(name))


async def rebuild_projection(records: Records, name: str) -> None:
    """Begin again with the first event that is kept: messages leave once more, with the same ids;
    documents are written anew, also over those that are as new."""
    while True:
        cursor = await _load(records, name)
        generation = cursor.state.generation + 1
        changes = {"position": 0, "generation": generation, "error": None, "failed": None}
        if await cursors.change(records, cursor, failing=False, **changes) is not None:
            return


async def drop_projection(store: Store, records: Records, name: str) -> None:
    """Forget a projection that no process runs any more: retention does not wait for it then."""
    cursor = await _load(records, name)
    holder = (await _holders(store)).get(name)
    if holder is not None:
        raise Conflict(
            f"projection {name!r} runs in {holder}, where it would begin again with the first "
            "event: stop that process, or start it without the projection"
        )
    if not await cursors.remove(records, cursor):
        raise Conflict(f"projection {name!r} has just moved on: some process runs it")


async def _load(records: Records, name: str) -> Cursor:
    cursor = await cursors.load(records, name)
    if cursor is None:
        raise NotFound(
            f"no projection {name!r} is registered; `holdfast projections list` shows what there is"
        )
    return cursor


async def _holders(store: Store) -> dict[str, str]:
    locks = [lock for lock in await store.locks() if lock.name.startswith(PROJECTION)]
    return {lock.name.removeprefix(PROJECTION): lock.owner or "a process" for lock in locks}


async def _view(store: Store, cursor: Cursor, holder: str | None) -> ProjectionView:
    events = await store.outbox(cursor.position, limit=COUNTED)
    state = cursor.state
    return ProjectionView(
        cursor.name,
        state.kind,
        cursor.position,
        len(events),
        at(events[0].at) if events else None,
        state.failing,
        state.error,
        at(state.failed),
        holder,
        state.generation,
    )
