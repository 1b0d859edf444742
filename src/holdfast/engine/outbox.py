"""Where the outbox ends now: what comes later begins behind it."""

from __future__ import annotations

from holdfast.ports.store import Store

FIRST_STEP = 1024


async def end_of_outbox(store: Store) -> int:
    """The position of the newest event, 0 if there is none. Months of events may be there: the end
    is searched for by steps that double, then by halves, each a read of one event."""
    position, step = 0, FIRST_STEP
    while events := await store.outbox(position + step, limit=1):
        position, step = events[0].position, 2 * step
    nothing_behind = position + step
    while position < nothing_behind:
        middle = (position + nothing_behind) // 2
        if events := await store.outbox(middle, limit=1):
            position = events[0].position
        else:
            nothing_behind = middle
    return position
