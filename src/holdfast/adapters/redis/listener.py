"""Notifications between processes: published by the script, received on a connection of its own.

One that is lost with the connection is made up for when it is back; and whoever waits looks by
itself from time to time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from typing import Any

from holdfast.adapters.redis.address import Address
from holdfast.adapters.redis.link import find_master
from holdfast.adapters.redis.wire import ReplyError, Wire

log = logging.getLogger("holdfast.redis")

PAUSE = 1.0
"""Between two tries to connect."""
PING = 10.0
"""A connection on which nothing comes for twice as long is taken as dead."""


class Listener:
    """Listens in the loop that first waited, and in the next one when that has ended.

    `received` is told what was published, and an empty message when some may have been missed.
    """

    def __init__(self, address: Address, channel: str, received: Callable[[bytes], None]) -> None:
        self._address = address
        self._channel = f"{address.prefix}holdfast:{channel}"
        self._receive = received
        self._listening: asyncio.Task[None] | None = None
        self._last_received = 0.0

    def listen(self) -> None:
        task = self._listening
        if task is None or task.done() or task.get_loop().is_closed():
            self._listening = asyncio.create_task(self._listen(), name="holdfast-redis-listener")

    async def stop(self) -> None:
        task, self._listening = self._listening, None
        if task is None or task.get_loop().is_closed():
            return
        if task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])
        else:
            task.get_loop().call_soon_threadsafe(task.cancel)

    async def _listen(self) -> None:
        while True:
            try:
                wire = await find_master(self._address, self._pushed)
            except (OSError, ReplyError) as error:
                log.debug("%s: can't subscribe to notifications: %s", self._address, error)
                await asyncio.sleep(PAUSE)
                continue
            with closing(wire):
                await self._subscribe(wire)

    async def _subscribe(self, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        wire.post("SUBSCRIBE", self._channel)
        self._last_received = loop.time()
        while not wire.closed and loop.time() - self._last_received < 2 * PING:
            wire.post("PING")
            await asyncio.wait([wire.ended], timeout=PING)

    def _pushed(self, message: Any) -> None:
        self._last_received = asyncio.get_running_loop().time()
        kind = message[0] if isinstance(message, list) else None
        if kind == b"subscribe":
            self._receive(b"")
        elif kind == b"message":
            self._receive(message[2])
