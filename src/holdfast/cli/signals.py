"""Ctrl-C and SIGTERM: the first one asks to stop, the second one ends the process at once.

Ending at once is safe: whatever was acknowledged is durable, and leases that nobody renews come to
an end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import FrameType

WATCHED = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """`async with StopSignal() as stop: await stop.wait()`; `stop.code` is the exit code without
    draining.

    Plain handlers rather than the loop's: they also hear the second signal while a step blocks the
    loop."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._event = asyncio.Event()
        self._before: dict[int, object] = {}

    @property
    def code(self) -> int:
        return 128 + (self.received or 0)

    async def wait(self) -> None:
        await self._event.wait()

    async def __aenter__(self) -> StopSignal:
        self._loop = asyncio.get_running_loop()
        for number in WATCHED:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    async def __aexit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            sys.stderr.write("holdfast: stopped at once; leases end by themselves\n")
            sys.stderr.flush()
            os._exit(128 + number)
        self.received = number
        self._loop.call_soon_threadsafe(self._event.set)
