"""The lanes: what waits in them, who leads them, what blocks them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from holdfast.cli.render.tables import Cell, empty, table
from holdfast.ports.store import LaneInfo


def lane_table(items: Sequence[LaneInfo]) -> RenderableType:
    if not items:
        return empty("lanes", "they are defined when a run is submitted or a worker starts")
    headings = ("LANE", "ORDER", "AT FAILURE", "QUEUED", "RUNNING", "LEADER", "TERM", "BLOCKED BY")
    return table(
        headings,
        map(_lane_row, items),
        right=("QUEUED", "RUNNING", "TERM"),
        whole=("LANE", "BLOCKED BY"),
        free="LEADER",
    )


def _lane_row(lane: LaneInfo) -> list[Cell]:
    fifo = lane.order == "fifo"
    leader = lane.leader or ("nobody" if fifo else "")
    counts = [str(lane.queued), str(lane.running)]
    return [
        lane.name,
        lane.order,
        lane.head if fifo else "",
        *counts,
        leader,
        str(lane.term or ""),
        lane.blocked_by,
    ]
