"""A thread with an event loop of its own, for what must go on when the caller's loop is busy or
gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class LoopThread:
    """Lease renewals and wake-ups are served here: user code can't block this loop."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    async def do(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Let the thread do something, from any loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self.loop))

    async def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        await asyncio.to_thread(self._thread.join)
