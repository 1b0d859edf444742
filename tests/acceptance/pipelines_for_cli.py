"""Pipelines that the command line tests run: they greet, and fail as their input says."""

import asyncio
import os
import sys

from pydantic import BaseModel

from holdfast import Context, Lane, Pause, Permanent, Pipeline


class Person(BaseModel):
    name: str
    trouble: str | None = None
    shouts: int = 2


greet = Pipeline("greet", input=Person)


@greet.step
async def hello(person: Person, ctx: Context) -> str:
    ctx.log.info("saying hello", name=person.name)
    ctx.usage(input_tokens=10, output_tokens=5, cost=0.25)
    return f"Hello {person.name}"


async def shout(number: int) -> str:
    return "!" * number


@greet.step
async def louder(person: Person, hello: str, ctx: Context) -> str:
    return hello + "".join(await ctx.map(shout, range(person.shouts)))


@greet.step(max_attempts=1)
async def deliver(person: Person, louder: str) -> dict[str, str]:
    if os.path.exists("repaired"):  # noqa: ASYNC240  it is a test
        return {"greeting": louder}
    if person.trouble == "fail":
        raise Permanent("nobody is at home")
    if person.trouble == "pause":
        raise Pause("over budget")
    if person.trouble == "wait":
        print("deliver is waiting", file=sys.stderr, flush=True)
        await asyncio.sleep(3600)
    return {"greeting": louder}


line = Pipeline("line", lane=Lane("line", "fifo", "block"), unique=True)


@line.step
async def queue(input) -> str:
    print("queue is waiting", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)
    return "done"
