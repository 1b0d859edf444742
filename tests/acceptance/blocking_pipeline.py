"""The pipelines of test_blocked_interpreter.py: a step that holds the interpreter lock for several
seconds, in the event loop or in a thread."""

from __future__ import annotations

import time

from holdfast import Pipeline

SECONDS = 2.7

in_loop = Pipeline("in-loop", input=str, max_attempts=2)
in_thread = Pipeline("in-thread", input=str, max_attempts=2)


@in_loop.step
async def count(input: str) -> int:
    return hold_the_interpreter()


@in_thread.step
def count_aside(input: str) -> int:
    return hold_the_interpreter()


def hold_the_interpreter() -> int:
    """One call of C code that keeps the interpreter lock for at least `SECONDS` of processor
    time."""
    size, started = 3_000_000, time.thread_time()
    sum(range(size))
    took = time.thread_time() - started
    return sum(range(int(size * SECONDS / took)))


PIPELINES = [in_loop, in_thread]
