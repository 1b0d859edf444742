"""The pipeline of `make crash`: five steps, and one line in effects.log for everything that is
executed.

The file stands for the outside world: what is executed twice is in it twice.
"""

from __future__ import annotations

import asyncio
import os
import time

from pydantic import BaseModel

from holdfast import Context, Pipeline

EFFECTS = "effects.log"
MOODS = ("delighted", "doubtful", "furious")
AT_ONCE = 4
"""Items of step 3 in flight at once."""


class Opinion(BaseModel):
    comment: str
    mood: str


demo = Pipeline("demo", input=int, timeout="5m")


@demo.step
async def load(input: int, ctx: Context) -> list[str]:
    """The comments, by id."""
    await work(ctx, 0.4)
    return [f"c-{number:02}" for number in range(1, input + 1)]


@demo.step
async def moods(load: list[str], ctx: Context) -> list[str]:
    await work(ctx, 0.5)
    return list(MOODS)


@demo.step
async def opinions(load: list[str], moods: list[str], ctx: Context) -> list[Opinion]:
    """The expensive one: a call per comment, each answer a checkpoint of its own."""

    async def ask(comment: str, ctx: Context) -> Opinion:
        await work(ctx, 0.3)
        return Opinion(comment=comment, mood=moods[int(comment[2:]) % len(moods)])

    return await ctx.map(ask, load, concurrency=AT_ONCE)


@demo.step
async def tally(opinions: list[Opinion], moods: list[str], ctx: Context) -> dict[str, int]:
    await work(ctx, 0.4)
    return {mood: sum(opinion.mood == mood for opinion in opinions) for mood in moods}


@demo.step
async def headline(tally: dict[str, int], ctx: Context) -> str:
    await work(ctx, 0.3)
    return ", ".join(f"{count} {mood}" for mood, count in tally.items())


async def work(ctx: Context, seconds: float) -> None:
    """Leave a trace, then take some time. One write to a file opened for appending is never torn or
    mixed."""
    line = f"{time.time()} {os.getpid()} {ctx.attempt} {ctx.idempotency_key}\n"
    file = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line.encode())
    os.close(file)
    await asyncio.sleep(seconds)
