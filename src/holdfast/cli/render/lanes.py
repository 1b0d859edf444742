"""The lanes: what waits in them, who leads them, what blocks them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.render.tables import Cell, empty, moment, table
from holdfast.ports.store import LaneInfo
from holdfast.services.lanes import LaneView, LeaderView


def lane_table(items: Sequence[LaneInfo]) -> RenderableType:
    if not items:
        return empty("lanes", "they are defined when a run is submitted or a worker starts")
    counts = ("QUEUED", "DELAYED", "RUNNING")
    return table(
        ("LANE", "ORDER", "AT FAILURE", *counts, "LEADER", "TERM", "BLOCKED BY"),
        map(_lane_row, items),
        right=(*counts, "TERM"),
        whole=("LANE", "BLOCKED BY"),
        free="LEADER",
    )


def _lane_row(lane: LaneInfo) -> list[Cell]:
    fifo = lane.order == "fifo"
    leader = lane.leader or ("nobody" if fifo else "")
    counts = [str(lane.queued), str(lane.delayed or ""), str(lane.running)]
    return [
        lane.name,
        lane.order,
        lane.head if fifo else "",
        *counts,
        leader,
        str(lane.term or ""),
        lane.blocked_by,
    ]


def lane_page(view: LaneView) -> RenderableType:
    lane = view.lane
    fifo = lane.order == "fifo"
    facts = [f"at failure {lane.head}"] if fifo else []
    facts += [f"{lane.queued} queued, {lane.delayed} of them delayed", f"{lane.running} running"]
    lines: list[RenderableType] = [
        Text.assemble((lane.name, "bold"), "  ", lane.order),
        Text(" · ".join(facts), style="dim"),
    ]
    if lane.blocked_by:
        lines.append(Text(f"blocked by failed run {lane.blocked_by}", style="red"))
    if fifo:
        leader = f"led by {lane.leader}, term {lane.term}" if lane.leader else "nobody leads it"
        lines.append(Text(leader))
    if view.leaders:
        lines += [Text(), _leader_table(view.leaders)]
    return Group(*lines)


def _leader_table(leaders: Sequence[LeaderView]) -> RenderableType:
    rows = [
        [str(leader.term), leader.worker, moment(leader.since), moment(leader.until), leader.ended]
        for leader in leaders
    ]
    headings = ("TERM", "LEADER", "FROM", "UNTIL", "ENDED BECAUSE")
    return table(headings, rows, right=("TERM",), whole=("LEADER",), free="ENDED BECAUSE")
