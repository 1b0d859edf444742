"""A pipeline of one step that leaves a trace before it returns anything."""

from __future__ import annotations

import os

from holdfast import Context, Pipeline

TRACES = "lone.log"

lone = Pipeline("lone", input=int)


@lone.step
async def only(input: int, ctx: Context) -> int:
    file = os.open(TRACES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, f"{ctx.run_id}\n".encode())  # never torn, never mixed
    os.close(file)
    return input
