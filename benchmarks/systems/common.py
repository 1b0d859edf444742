"""What the measured processes share. Standard library only: the peers' environment imports it
too."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any


def answer(**figures: Any) -> None:
    """The process's one line of output."""
    print(json.dumps(figures), flush=True)


def percentile(figures: list[float], share: float) -> float:
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def latency(seconds: list[float]) -> dict[str, float]:
    """The answer of a latency measurement, in milliseconds."""
    return {"value": percentile(seconds, 0.50) * 1e3, "p99": percentile(seconds, 0.99) * 1e3}


async def keep_in_flight(count: int, flight: int, call: Callable[[], Awaitable[Any]]) -> float:
    """Do something `count` times, `flight` at once, and return how often per second it was done."""
    numbers = iter(range(count))

    async def lane() -> None:
        for _ in numbers:
            await call()

    start = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(min(flight, count))))
    return count / (time.perf_counter() - start)


async def one_at_a_time(
    count: int, call: Callable[[], Awaitable[Any]], pause: float = 0.0
) -> list[float]:
    """How long each call took, in seconds. With `pause` the system is idle before each call."""
    seconds: list[float] = []
    for _ in range(count):
        if pause:
            await asyncio.sleep(pause)
        start = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - start)
    return seconds


def run(main: Coroutine[Any, Any, Any], *, fast: bool) -> Any:
    """`asyncio.run`, on uvloop where that is wanted."""
    if not fast:
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def read_task() -> dict[str, Any]:
    """What to measure: the first argument, as JSON."""
    return json.loads(sys.argv[1])
