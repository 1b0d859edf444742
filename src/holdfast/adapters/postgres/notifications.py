"""Waking other processes, not with every commit: a notification makes commits wait for one
another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.errors import StoreUnavailable

INTERVAL = 0.02
"""Other processes are woken at most so often, in seconds."""


class Throttle:
    """Decides which batches carry a message to other processes: the first, and then one per
    `INTERVAL` seconds. What no batch has carried after twice that time is sent on its own."""

    def __init__(self, message: str, send: Callable[[str], Awaitable[object]]) -> None:
        self._message = message
        self._send = send
        self._sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    def next(self) -> str | None:
        """The message, if the batch that leaves now is to carry it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._sent >= INTERVAL:
            self._sent = now
            self.stop()
            return self._message
        if self._timer is None:
            self._timer = loop.call_at(self._sent + 2 * INTERVAL, self._send_now)
        return None

    def _send_now(self) -> None:
        self._timer = None
        self._sent = asyncio.get_running_loop().time()
        self._sending = asyncio.create_task(self._notify())

    async def _notify(self) -> None:
        try:
            await self._send(self._message)
        except StoreUnavailable:
            pass  # the others will look by themselves

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
