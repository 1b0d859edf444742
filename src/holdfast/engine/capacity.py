"""How much a worker may still take on."""

from __future__ import annotations

import asyncio

from holdfast.engine.input_room import InputRoom


class Capacity:
    """The slots and bytes of one worker. One counter: `free = concurrency − reserved`.

    A slot is reserved when a run is requested, by the claimers. It is released by the claimer when
    a claim brings fewer runs than were requested, and by the worker as soon as an attempt has
    nothing left to do but to write its outcome: the run that takes its slot can then be claimed in
    the same transaction. The bytes of an input count from its claim to the end of the attempt,
    those of one in the blob store from when it is read (`inputs`); while they are used up nothing
    is free."""

    def __init__(self, concurrency: int, max_bytes: int) -> None:
        self._concurrency = concurrency
        self._max_bytes = max_bytes
        self._reserved = 0
        self._bytes = 0
        self.closed = False
        """Nothing further may be requested: the worker stops."""
        self._released = asyncio.Event()
        self.inputs = InputRoom(max_bytes, self._released.set)

    @property
    def free(self) -> int:
        """Runs that may be requested now. Zero once it is closed."""
        if self.closed or self.inputs.is_full:
            return 0
        return self._concurrency - self._reserved

    @property
    def free_bytes(self) -> int:
        return max(0, self._max_bytes - max(self._bytes, self.inputs.bytes))

    def reserve(self, slots: int) -> None:
        self._reserved += slots

    def release(self, slots: int = 1) -> None:
        self._reserved -= slots
        self._released.set()

    def add_input(self, size: int) -> None:
        self._bytes += size

    def remove_input(self, size: int) -> None:
        self._bytes -= size

    def close(self) -> None:
        """Let nothing further be requested, and wake whoever waits for a slot."""
        self.closed = True
        self._released.set()

    async def wait_for_slot(self) -> None:
        """Until a slot is free, or it is closed."""
        while not self.free and not self.closed:
            self._released.clear()
            await self._released.wait()
