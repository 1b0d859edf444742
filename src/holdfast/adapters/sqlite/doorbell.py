"""Waking those who wait for a change: at once inside the process, within a poll between processes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

POLL = 0.05


class Doorbell:
    """Counts commits of this process, and looks at the file's data version for those of others.

    `PRAGMA data_version` reads a counter in shared memory: some microseconds, no lock, no disk.
    """

    def __init__(self) -> None:
        self._changes = 1
        self._lock = threading.Lock()
        self._waiting: dict[tuple[asyncio.AbstractEventLoop, asyncio.Event], None] = {}  # in order of arrival
        self._file: sqlite3.Connection | None = None
        self._seen: int | None = None

    def watch(self, file: sqlite3.Connection | None) -> None:
        """Also hear the commits of other processes through this connection, which is ours from here on."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = file
        self._seen = None

    def ring(self) -> None:
        """Something was committed. Called from any thread."""
        with self._lock:
            self._changes += 1
            for loop, event in self._waiting:
                try:
                    loop.call_soon_threadsafe(event.set)
                except RuntimeError:  # that loop is closed
                    pass

    async def wait(self, since: int, timeout: float) -> int:
        """The number of the newest change, as soon as it is above `since`, or after `timeout`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        waiter = (loop, asyncio.Event())
        with self._lock:
            self._waiting[waiter] = None
        try:
            while self._look() <= since and (left := deadline - loop.time()) > 0:
                try:
                    # Unlike wait_for, asyncio.timeout never swallows a cancellation.
                    async with asyncio.timeout(min(POLL, left) if self._file else left):
                        await waiter[1].wait()
                except TimeoutError:
                    pass
                waiter[1].clear()
        finally:
            with self._lock:
                self._waiting.pop(waiter, None)
        return self._changes

    def _look(self) -> int:
        with self._lock:
            if self._file is not None:
                version = self._file.execute("PRAGMA data_version").fetchone()[0]
                if version != self._seen:
                    self._changes += self._seen is not None
                    self._seen = version
        return self._changes
