"""A lane with the history of its leaders: the shape behind `lanes show`."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from holdfast.engine import leader_history
from holdfast.engine.leader_history import LeaderTerm
from holdfast.errors import NotFound
from holdfast.ports.records import Records
from holdfast.ports.store import LaneInfo, Store
from holdfast.services.views import at


class LeaderView(Struct):
    """A term. `until` and `ended`, the reason, are None for the one that leads now."""

    worker: str
    term: int
    since: datetime
    until: datetime | None
    ended: str | None


class LaneView(Struct):
    """`leaders` are the last ones of a fifo lane, the newest first."""

    lane: LaneInfo
    leaders: list[LeaderView]


async def lane_view(store: Store, records: Records, name: str) -> LaneView:
    lanes = {lane.name: lane for lane in await store.lanes()}
    if name not in lanes:
        known = ", ".join(lanes) or "none"
        raise NotFound(f"no lane {name!r}; known: {known}. `holdfast lanes list` shows them")
    history = await leader_history.read(records, name)
    return LaneView(lanes[name], [_leader(leader) for leader in reversed(history)])


def _leader(leader: LeaderTerm) -> LeaderView:
    since = datetime.fromtimestamp(leader.since, UTC)
    return LeaderView(leader.worker, leader.term, since, at(leader.until), leader.ended)
