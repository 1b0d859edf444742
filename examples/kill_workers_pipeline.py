"""The pipeline of kill_workers.py: a chain of steps, each of which leaves a trace before it returns
anything."""

from __future__ import annotations

import asyncio
import os
import random
from inspect import Parameter, Signature

from holdfast import Context, Pipeline

TRACES = "traces.log"
STEPS = int(os.environ.get("SOAK_STEPS", "5"))
STEP_SECONDS = float(os.environ.get("SOAK_STEP_SECONDS", "0.05"))

soak = Pipeline(
    "soak", input=int, max_attempts=10_000
)  # dying all the time is what these workers are for


def declare(number: int) -> None:
    """Step n adds one to what step n − 1 gave: the result is the input plus the number of steps."""
    before = f"step{number - 1}" if number > 1 else "input"

    async def step(ctx: Context, **given: int) -> int:
        leave_trace(ctx)
        await asyncio.sleep(random.uniform(0, 2 * STEP_SECONDS))
        return given[before] + 1

    wanted = [Parameter(name, Parameter.KEYWORD_ONLY) for name in (before, "ctx")]
    setattr(step, "__signature__", Signature(wanted))  # noqa: B010  (unknown to type checkers)
    soak.step(name=f"step{number}")(step)


def leave_trace(ctx: Context) -> None:
    """One write to a file opened for appending: never torn, never mixed, and no kill takes it
    back."""
    os.write(traces(), f"{ctx.run_id} {ctx.step_name} {os.getpid()} {ctx.epoch}\n".encode())


def traces() -> int:
    global _traces
    if _traces is None:
        _traces = os.open(TRACES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    return _traces


_traces: int | None = None

for number in range(1, STEPS + 1):
    declare(number)
