"""The runs that have waited longest in a lane, without reading all that wait there.

A store lists its newest runs first, and thousands may wait: so the number is searched for, by
halves, below which there are only a few runs. That is some 20 short reads among a million."""

from __future__ import annotations

from holdfast.model.run import Run, RunState
from holdfast.ports.store import RunFilter, Store

READ = 50
"""Runs of one read."""


async def oldest_queued(store: Store, lane: str, count: int = 1) -> list[Run]:
    """The first `count` (at most 25) queued runs of a lane, in the order of their acceptance. What
    is claimed meanwhile may be missing."""
    where = RunFilter(lane=lane, state=RunState.QUEUED)
    page = await store.runs(where, limit=READ)
    if len(page) < READ:
        return page[::-1][:count]
    low, high = 0, page[0].seq + 1  # below them are fewer than `count` runs, and READ or more
    while high - low > 1:
        middle = (low + high) // 2
        page = await store.runs(where, limit=READ, before=middle)
        if len(page) == READ:
            high = middle
        elif len(page) < count:
            low = middle
        else:
            break
    return page[::-1][:count]
