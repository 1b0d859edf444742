"""The pipelines that holdfast is measured with, on whatever store."""

from __future__ import annotations

from collections.abc import Callable

from holdfast import Context, Pipeline


def five_steps(when_done: Callable[[], None] = lambda: None) -> Pipeline[None]:
    """Each step is durable before the next begins."""
    five = Pipeline("five")

    @five.step
    async def first(input: None) -> dict:
        return {"i": 1, "ok": True}

    @five.step
    async def second(first: dict) -> dict:
        return {"i": 2, "ok": True}

    @five.step
    async def third(second: dict) -> dict:
        return {"i": 3, "ok": True}

    @five.step
    async def fourth(third: dict) -> dict:
        return {"i": 4, "ok": True}

    @five.step
    async def fifth(fourth: dict) -> dict:
        when_done()
        return {"i": 5, "ok": True}

    return five


mapper = Pipeline("mapper")


async def square(number: int) -> int:
    return number * number


@mapper.step
async def squares(input: int, ctx: Context) -> int:
    return len(await ctx.map(square, range(input), concurrency=256))
