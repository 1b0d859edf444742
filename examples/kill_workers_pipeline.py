"""The pipelines of kill_workers.py: a chain of steps, each of which leaves a trace before it
returns anything; and one that does what no store can hold, which must harm nobody else."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Any

from holdfast import Context, Pipeline, Transient

TRACES = "traces.log"
STEPS = int(os.environ.get("SOAK_STEPS", "5"))
STEP_SECONDS = float(os.environ.get("SOAK_STEP_SECONDS", "0.05"))

soak = Pipeline("soak", input=int, max_attempts=10_000)  # these workers are killed all the time


def declare(number: int) -> None:
    """Step n adds one to what step n − 1 gave: the result is the input plus the number of steps."""
    before = f"step{number - 1}" if number > 1 else "input"

    async def step(ctx: Context, **inputs: int) -> int:
        leave_trace(ctx)
        await asyncio.sleep(random.uniform(0, 2 * STEP_SECONDS))
        return inputs[before] + 1

    parameters = [Parameter(name, Parameter.KEYWORD_ONLY) for name in (before, "ctx")]
    setattr(step, "__signature__", Signature(parameters))  # noqa: B010  (unknown to type checkers)
    soak.step(name=f"step{number}")(step)


def leave_trace(ctx: Context) -> None:
    """One write to a file opened for appending: atomic, and not undone by a kill."""
    os.write(traces(), f"{ctx.run_id} {ctx.step_name} {os.getpid()} {ctx.epoch}\n".encode())


def traces() -> int:
    global _traces
    if _traces is None:
        _traces = os.open(TRACES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    return _traces


_traces: int | None = None

for number in range(1, STEPS + 1):
    declare(number)


# --- hostile values -------------------------------------------------------------------------------

hostile = Pipeline("hostile", input=str, max_attempts=10_000)


async def fail_with_odd_name(ctx: Context) -> None:
    raise FileNotFoundError("no file of this name: caf\udce9.csv")


async def count_without_end(ctx: Context) -> None:
    ctx.progress(2**70)


async def cost_no_number(ctx: Context) -> None:
    ctx.usage(cost=float("nan"))


async def return_half_a_pair(ctx: Context) -> str:
    return "half \ud800 a pair"


async def return_no_number(ctx: Context) -> dict[str, float]:
    return {"score": float("inf")}


async def wait_for_ever(ctx: Context) -> None:
    raise Transient("come back at the end of time", retry_after=float("inf"))


async def map_half_a_pair(ctx: Context) -> list[int]:
    return await ctx.map(length, ["\udcff"])


async def map_long_texts(ctx: Context) -> list[int]:
    return await ctx.map(length, [letter * 5000 for letter in "abü"])


async def log_anything(ctx: Context) -> None:
    ctx.log.info("odd \udcff", number=10**400, nothing=object(), text="\ud800")


async def length(text: str) -> int:
    return len(text)


HOSTILE_ACTIONS: dict[str, tuple[Callable[[Context], Awaitable[Any]], str | None]] = {
    "error": (fail_with_odd_name, "FileNotFoundError"),
    "progress": (count_without_end, "InvalidInput"),
    "cost": (cost_no_number, "InvalidInput"),
    "text": (return_half_a_pair, "Permanent"),
    "number": (return_no_number, "Permanent"),
    "delay": (wait_for_ever, "InvalidInput"),
    "key": (map_half_a_pair, "Fix"),
    "long keys": (map_long_texts, None),
    "log": (log_anything, None),
}
"""What is done, and the error that the run must end with; None: it succeeds."""


@hostile.step(max_attempts=1)
async def act(input: str, ctx: Context) -> Any:
    return await HOSTILE_ACTIONS[input][0](ctx)
