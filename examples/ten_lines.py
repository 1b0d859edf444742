"""The smallest pipeline: three steps, one run, one result.

python examples/ten_lines.py
"""

import asyncio

from holdfast import Holdfast, Pipeline

count = Pipeline("count", input=str)


@count.step
async def words(input: str) -> list[str]:
    return input.split()


@count.step
async def lengths(
    words: list[str],
) -> list[int]:  # a parameter named like a step is that step's result
    return [len(word) for word in words]


@count.step
async def longest(words: list[str], lengths: list[int]) -> str:
    return words[lengths.index(max(lengths))]


async def main() -> None:
    async with Holdfast("sqlite:///holdfast.db", pipelines=[count]) as app:
        run = await app.submit(count, "whatever crashes, every step runs once")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
