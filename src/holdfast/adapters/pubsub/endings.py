"""Acknowledges and returns deliveries in batches: those that end while a request is under way go
with the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError

log = logging.getLogger("holdfast.pubsub")

BATCH = 1000
"""Most deliveries in one request: with their ids of about 200 bytes it stays below 512 KiB."""


Send = Callable[[list[str], int | None], Awaitable[None]]
"""Takes ack ids, and the seconds until they come again; None: never."""


class Endings:
    """Of one subscription. If Pub/Sub can't be reached, the deliveries come again, which is
    harmless."""

    def __init__(self, name: str, send: Send) -> None:
        self._name = name
        self._send = send
        self._waiting: dict[int | None, list[tuple[str, asyncio.Future[None]]]] = {}
        self._sending: asyncio.Task[None] | None = None

    async def end(self, ack_id: str, again_after: int | None) -> None:
        """Return when Pub/Sub has answered, or can't be reached."""
        sent = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(again_after, []).append((ack_id, sent))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        await sent

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                again_after, endings = self._waiting.popitem()
                for start in range(0, len(endings), BATCH):
                    await self._send_batch(endings[start : start + BATCH], again_after)
        finally:
            self._sending = None

    async def _send_batch(
        self, batch: list[tuple[str, asyncio.Future[None]]], again_after: int | None
    ) -> None:
        try:
            await self._send([ack_id for ack_id, _ in batch], again_after)
        except HoldfastError as error:
            log.warning(
                "subscription %s: can't end %d deliveries, they will come again: %s",
                self._name,
                len(batch),
                error,
            )
        finally:
            for _, sent in batch:
                if not sent.done():
                    sent.set_result(None)
