"""The pipeline of test_crashes.py: its middle step waits for a gate, one for each process, and
notes what it does."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from holdfast import Context, Pipeline

NOTES = "notes.log"
POLL = 0.02

gated = Pipeline("gated", input=str)


@gated.step
async def before(input: str, ctx: Context) -> str:
    note("begins", ctx)
    return f"before by {os.getpid()}"


@gated.step
async def slow(input: str, before: str, ctx: Context) -> str:
    """Input "blocking" blocks the event loop: whoever is paused here returns a result before it can
    be told to stop."""
    note("begins", ctx)
    gate = Path(f"gate-{os.getpid()}")
    while not gate.exists():  # noqa: ASYNC240  (another process opens it)
        if input == "blocking":
            time.sleep(POLL)  # noqa: ASYNC251  (on purpose)
        else:
            await asyncio.sleep(POLL)
    note("returns", ctx)
    return f"{before}, slow by {os.getpid()}"


@gated.step
async def after(slow: str, ctx: Context) -> str:
    note("begins", ctx)
    return f"{slow}, after by {os.getpid()}"


def note(text: str, ctx: Context) -> None:
    """One write to a file opened for appending is atomic."""
    file = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, f"{os.getpid()} {text} {ctx.step_name}\n".encode())
    os.close(file)
