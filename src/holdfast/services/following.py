"""Following a run while it changes: the store's doorbell, with a short pause so that nobody is flooded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from holdfast.errors import NotFound
from holdfast.model.run import Run, RunState
from holdfast.ports.store import Store

PAUSE = 0.1
PATIENCE = 1.0
OVER = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


async def follow(store: Store, run_id: str) -> AsyncIterator[Run]:
    """The run now, then again whenever something may have changed; the last one has ended."""
    change = 0
    while True:
        run = await store.run(run_id)
        if run is None:
            raise NotFound(f"run {run_id} does not exist (any more)")
        yield run
        if run.state in OVER:
            return
        change = await store.wait(change, PATIENCE)
        await asyncio.sleep(PAUSE)
