"""Waiting for the end of a run, for a caller that prefers to."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from holdfast.services.local.runs import LocalRuns
from holdfast.services.views import RunSummary


async def wait_for_end(request: Request, runs: LocalRuns, run: str, seconds: float) -> RunSummary:
    """The run when it has ended, when the time is up, or when this process has to end: its caller
    is answered then, and may wait for another process."""
    waiting = asyncio.create_task(runs.wait(run, seconds))
    closing = asyncio.create_task(request.app.state.hub.closed.wait())
    try:
        await asyncio.wait([waiting, closing], return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else await runs.wait(run, 0)
    finally:
        waiting.cancel()
        closing.cancel()
