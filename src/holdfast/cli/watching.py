"""Waiting for a run that is executed in this process, with its progress on stderr."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import Paused
from holdfast.cli.session import Session
from holdfast.model.run import Run, RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.progress import RunProgress
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle
    from holdfast.model.pipeline import Pipeline

OVER = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


async def hand_over(session: Session, holdfast: Holdfast) -> None:
    """Let steps under way end within the grace, and give back what is not finished then."""
    if holdfast.worker is not None and holdfast.worker.active:
        session.out.note("handing over; steps under way may end, Ctrl-C once more stops at once")
        await holdfast.worker.stop()


async def watch(
    handle: RunHandle, show: Coroutine[Any, Any, None], timeout: float | None, stop: StopSignal
) -> bool:
    """Show progress until the run is over (True), is paused, or somebody stops the waiting
    (False)."""
    ending = asyncio.create_task(handle.wait())
    showing = asyncio.create_task(show)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait(
            {ending, showing, stopping}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if ending.done() or showing.done():  # the page is drawn once more, with the end on it
            await asyncio.wait({showing}, timeout=2)
        for task in (showing, ending):
            if task.done():
                task.result()
        return ending.done()
    finally:
        for task in (ending, showing, stopping):
            task.cancel()
        await asyncio.gather(ending, showing, stopping, return_exceptions=True)


async def show(
    session: Session,
    holdfast: Holdfast,
    handle: RunHandle,
    pipeline: Pipeline[Any],
    progress: AbstractContextManager[RunProgress],
) -> None:
    """Follow the run on stderr until it has ended, or is paused: then only people can make it go
    on."""
    import time

    from holdfast.services.following import follow
    from holdfast.services.views import live_view

    session.out.note(f"run {handle.id}")
    with progress as page:
        async for run in follow(holdfast.store, handle.id):
            page.show(await live_view(holdfast.store, run, time.time(), list(pipeline.steps)))
            if run.state == RunState.PAUSED:
                raise Paused(run.id, why(run))


def why(run: Run) -> str:
    return run.reason or "no reason was given"
