"""The pipeline of test_cancelling.py: a row of items or inner steps, each of which notes when it
starts."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

from holdfast import Context, Pipeline

STARTS = "starts.log"

ticking = Pipeline("ticking", input=str)


async def tick(number: int) -> int:
    """It does not end, so that no refused result tells that the run is no longer ours."""
    note_start()
    await asyncio.sleep(3600)
    return number


@ticking.step
async def ticks(input: str, ctx: Context) -> None:
    """Every 20 ms something starts."""
    if input == "items":
        await ctx.map(tick, numbers(), concurrency=1000)
    async with asyncio.TaskGroup() as group:
        async for number in numbers():
            group.create_task(ctx.step(f"tick-{number}", tick, number))


async def numbers() -> AsyncIterator[int]:
    for number in range(1000):
        await asyncio.sleep(0.02)
        yield number


def note_start() -> None:
    """The host's clock, which all its processes share."""
    file = os.open(STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, f"{time.time()}\n".encode())
    os.close(file)
