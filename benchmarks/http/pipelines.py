"""What is submitted."""

from __future__ import annotations

from holdfast import Pipeline

noop = Pipeline("noop", input=dict)


@noop.step
async def work(input: dict) -> int:
    return input["number"]
