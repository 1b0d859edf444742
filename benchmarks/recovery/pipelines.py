"""What the workers execute whose recovery is measured. Items note when they start, before they do
anything."""

from __future__ import annotations

import asyncio
import os
import time

from holdfast import CommittedEvent, Context, Lane, Outgoing, Pipeline

STARTS = "starts.log"
TICK = 0.2
"""Seconds of an item."""

ticking = Pipeline("ticking", input=int, timeout="2h", max_attempts=1000)
line = Pipeline("line", input=int, lane=Lane("line", order="fifo"), timeout="2h", max_attempts=1000)
stubborn = Pipeline("stubborn", input=int)
told = Pipeline("told", input=int)


async def tick(number: int, ctx: Context) -> int:
    """One write to a file opened for appending: atomic, and not undone by a kill."""
    file = os.open(STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, f"{time.time():.4f} {os.getpid()} {ctx.pipeline} {ctx.run_id}\n".encode())
    os.close(file)
    await asyncio.sleep(TICK)
    return number


@ticking.step(timeout="2h")
async def many(input: int, ctx: Context) -> int:
    return len(await ctx.map(tick, range(input), concurrency=1))


@line.step(timeout="2h")
async def many_in_line(input: int, ctx: Context) -> int:
    return len(await ctx.map(tick, range(input), concurrency=1))


@stubborn.step
async def swallow(input: int, ctx: Context) -> None:
    """A step that ignores its cancellation."""
    await tick(input, ctx)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@told.step
async def double(input: int) -> int:
    return 2 * input


@told.publishes(events=["run.completed"])
def results(event: CommittedEvent) -> Outgoing:
    return Outgoing(topic="results", body=event.result)
