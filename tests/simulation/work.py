"""The pipelines of the stories: four shapes of work, with durations and failures drawn from the
world's chance, and results that can be checked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast import Context, Items, Lane, Permanent, Pipeline, Transient
from holdfast.testing.world import World

OLD, NEW = 1000, 1_000_000
"""What a newer version of `two` and of `three` adds to its result. One of `squares` makes other
items, and one more of them."""

NEEDS = {"two": ["one"], "three": ["two"], "both": ["squares", "streamed"]}
"""Steps, and the steps whose results must be durable before they start. A streamed one need not."""

STUBBORN = 3
"""How often a step that was told to end may look at its clock before it counts as going on."""


def pipelines(
    world: World, report: Callable[[str], None], version: int = 1, *, calm: bool = False
) -> list[Pipeline[Any]]:
    """`report` is told what must never happen. In a calm world more is tried again, in place."""
    chance, is_new = world.random, version - 1

    async def work() -> None:
        await asyncio.sleep(chance.choice([0, 0, 0.5, 5, 20]))

    async def work_while_told(ctx: Context) -> None:
        """In small pieces, as a long computation: whoever loses the lease is cancelled."""
        count = 0
        for _ in range(chance.choice([0, 0, 10, 40])):
            await asyncio.sleep(1)
            count = count + 1 if ctx.cancelled else 0
            if count > STUBBORN:
                report(f"L1: {ctx.step_name} of run {ctx.run_id} goes on without a lease")
                return

    chain = Pipeline("chain", max_attempts=50)

    @chain.step
    async def one(input: int) -> int:
        await work()
        return input + 1

    @chain.step(max_attempts=20, version=str(version))
    async def two(one: int) -> int:
        await work()
        if chance.random() < (0.6 if calm else 0.2):
            raise Transient(
                "not now", retry_after=chance.choice([5, 20] if calm else [None, 1, 90])
            )
        return one + 1 + OLD * is_new

    @chain.step(version=str(version))
    async def three(two: int) -> int:
        await work()
        return two + 1 + NEW * is_new

    fan = Pipeline("fan", max_attempts=50)

    async def square(n: int) -> int:
        await work()
        return n * n + OLD * is_new

    async def zero() -> int:
        return 0

    @fan.step(version=str(version))
    async def squares(input: int, ctx: Context) -> list[int]:
        return await ctx.map(square, range(input % 5 + 2 + is_new), concurrency=2)

    @fan.step
    async def streamed(squares: Items[int]) -> int:
        return sum([value async for _, value in squares])

    @fan.step
    async def both(squares: list[int], streamed: int, ctx: Context) -> int:
        await work_while_told(ctx)
        return sum(squares) - streamed + await ctx.step("late", zero)

    ordered = Pipeline("ordered", lane=Lane("line", order="fifo"), max_attempts=50)

    @ordered.step(max_attempts=20)
    async def turn(input: int) -> int:
        await work()
        if chance.random() < 0.2:
            raise Transient("again", retry_after=chance.choice([None, 70]))
        if chance.random() < 0.05:
            raise Permanent("never")
        return input

    single = Pipeline("single", unique=True, max_attempts=50)

    @single.step
    async def alone(input: int) -> int:
        await work()
        return input

    return [chain, fan, ordered, single]


def is_possible(pipeline: str, input: int, result: int) -> bool:
    """Whether one version of the code makes this result of that input."""
    match pipeline:
        case "chain":
            return result in (input + 3, input + 3 + OLD + NEW)
        case "fan":
            return result == 0
        case _:
            return result == input
