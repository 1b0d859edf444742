"""A step's items on their way to the steps that stream them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from holdfast.errors import Permanent
from holdfast.model.codec import Codec


class Feed:
    """Items of one step as JSON text, in the order in which they were finished or reused."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.closed = False
        self.texts: dict[str, str] = {}
        self.order: list[str] = []
        self._changed: asyncio.Future[None] | None = None

    def put(self, key: str, text: str) -> None:
        if key not in self.texts:
            self.texts[key] = text
            self.order.append(key)
            self._wake()

    def close(self) -> None:
        """The step has ended: no more items will come."""
        self.closed = True
        self._wake()

    async def change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


class View:
    """What one streaming step sees of a feed: values of the type that it declared."""

    def __init__(self, feed: Feed, codec: Codec) -> None:
        self._feed = feed
        self._codec = codec

    async def stream(self) -> AsyncIterator[tuple[str, Any]]:
        index = 0
        while True:
            while index < len(self._feed.order):
                key = self._feed.order[index]
                index += 1
                yield key, self._codec.decode(self._feed.texts[key])
            if self._feed.closed:
                return
            await self._feed.change()

    async def value(self, key: str) -> Any:
        while key not in self._feed.texts:
            if self._feed.closed:
                raise Permanent(f"step {self._feed.step!r} ended without an item {key!r}")
            await self._feed.change()
        return self._codec.decode(self._feed.texts[key])
