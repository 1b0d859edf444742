"""Following a run while it changes: notifications of the store, at most ten a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from holdfast.errors import NotFound, Transient
from holdfast.model.run import Run, RunState
from holdfast.ports.store import Store

log = logging.getLogger("holdfast.following")

PAUSE = 0.1
POLL_INTERVAL = 1.0
OVER = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


async def follow(store: Store, run_id: str) -> AsyncIterator[Run]:
    """The run now, then again whenever something may have changed; the last one has ended."""
    change = 0
    while True:
        run = await _read_run(store, run_id)
        yield run
        if run.state in OVER:
            return
        change = await store.wait(change, POLL_INTERVAL)
        await asyncio.sleep(PAUSE)


async def _read_run(store: Store, run_id: str) -> Run:
    """The run, as soon as the store answers: that it is away for a while is no reason to stop
    watching."""
    while True:
        try:
            run = await store.run(run_id)
        except Transient as error:
            log.warning("can't look at run %s: %s", run_id, error)
            await asyncio.sleep(POLL_INTERVAL)
            continue
        if run is None:
            raise NotFound(f"run {run_id} does not exist (any more)")
        return run
