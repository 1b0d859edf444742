"""What is submitted."""

from __future__ import annotations

import asyncio

from holdfast import Pipeline

noop = Pipeline("noop", input=dict)


@noop.step
async def work(input: dict) -> int:
    return input["number"]


nap = Pipeline("nap", input=int)


@nap.step
async def sleep(input: int) -> int:
    await asyncio.sleep(0.02)
    return input
