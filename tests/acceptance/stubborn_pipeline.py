"""The pipelines of test_stopping.py: each ignores a stop in another way. A file shows that they
have begun."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from holdfast import Context, Pipeline

BEGUN = "begun"
LONG = 3600.0

swallows = Pipeline("swallows", input=str)
blocks_thread = Pipeline("blocks-thread", input=str)
blocks_loop = Pipeline("blocks-loop", input=str)
obeys = Pipeline("obeys", input=str)


@swallows.step
async def ignores_cancellation(input: str) -> str:
    """Ignores its cancellation."""
    note_begin()
    while True:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            pass


@blocks_thread.step
def waits(input: str) -> str:
    """A blocking call that nothing can interrupt."""
    note_begin()
    time.sleep(LONG)
    return input


@blocks_loop.step
async def holds(input: str) -> str:
    """Nothing else of the process runs any more."""
    note_begin()
    time.sleep(LONG)  # noqa: ASYNC251  (on purpose)
    return input


@obeys.step
async def sleeps(input: str, ctx: Context) -> str:
    note_begin()
    await asyncio.sleep(LONG)
    return input


def note_begin() -> None:
    Path(BEGUN).touch()


PIPELINES = [swallows, blocks_thread, blocks_loop, obeys]
