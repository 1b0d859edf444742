"""The writer thread: whatever is waiting when it wakes up goes into one transaction (group
commit)."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.adapters.sqlite import batch, database
from holdfast.errors import StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Wake

POLL = 0.025
"""How often an idle process looks whether another one has committed something, in seconds."""

MAX_COMMANDS = 128
"""A full batch is not made fuller: while the next one is written, those who waited for this one can
go on."""


class PendingBatch:
    """A batch that waits for the writer, and the future that its caller awaits in its own event
    loop."""

    __slots__ = ("commands", "future", "loop")

    def __init__(self, commands: Sequence[Command[Any]]) -> None:
        self.commands = commands
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Any]] = self.loop.create_future()

    def answer(self, replies: list[Any] | BaseException) -> None:
        try:
            self.loop.call_soon_threadsafe(self._resolve, replies)
        except RuntimeError:  # the caller's loop is closed: nobody waits any more
            pass

    def _resolve(self, replies: list[Any] | BaseException) -> None:
        if self.future.done():
            return
        if isinstance(replies, BaseException):
            self.future.set_exception(replies)
        else:
            self.future.set_result(replies)


class Writer:
    """Owns the one connection that writes. Both callbacks are called on its thread: `committed`
    with the commands and replies of each of its transactions, `changed` when another process has
    committed something, with whom that wakes.

    `PRAGMA data_version` reads a counter in shared memory: some microseconds, no lock, no disk. It
    changes with the commits of *other* connections, so it is read on this connection: on any other
    it would also change with our own commits."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        committed: Callable[[Sequence[Command[Any]], Sequence[Any]], None],
        changed: Callable[[Wake], None],
    ) -> None:
        self._path = path
        self._clock = clock
        self._committed = committed
        self._changed = changed
        self._version: int | None = None
        self._audit: int | None = None
        self._listened = 0.0
        self._requests: queue.SimpleQueue[PendingBatch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._work, name="holdfast-sqlite-writer", daemon=True
        )
        self._listening = threading.Event()
        self._closed = False

    def start(self) -> None:
        """Return once it listens: commits of other processes are noticed from then on."""
        self._thread.start()
        self._listening.wait()

    def submit(self, commands: Sequence[Command[Any]]) -> asyncio.Future[list[Any]]:
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} is closed")
        request = PendingBatch(commands)
        self._requests.put(request)
        return request.future

    def stop(self) -> None:
        """Finish what is queued, then close the connection."""
        self._closed = True
        self._requests.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            connection = database.connect(self._path)
            self._listen(connection)
        finally:
            self._listening.set()
        try:
            while True:
                self._listen(connection)
                try:
                    request = self._requests.get(timeout=POLL)
                except queue.Empty:
                    continue
                if request is None:
                    return
                self._commit(connection, self._collect(request))
        finally:
            connection.close()

    def _listen(self, connection: sqlite3.Connection) -> None:
        """Notice what other processes did, at most every POLL seconds."""
        now = time.monotonic()
        if now - self._listened < POLL * 0.9:
            return
        self._listened = now
        try:
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return
            # Taking a lease away leaves an audit entry: a newer one means that it was done.
            audit = connection.execute("SELECT max(id) FROM audit").fetchone()[0]
        except sqlite3.Error:  # the next use of the file raises the error
            return
        if self._version is not None:
            self._changed(Wake.WORKERS if audit == self._audit else Wake.HOLDERS)
        self._version, self._audit = version, audit

    def _collect(self, first: PendingBatch) -> list[PendingBatch]:
        requests, size = [first], len(first.commands)
        while size < MAX_COMMANDS:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                break
            if request is None:
                self._requests.put(None)
                break
            requests.append(request)
            size += len(request.commands)
        return requests

    def _commit(self, connection: sqlite3.Connection, requests: list[PendingBatch]) -> None:
        commands = [command for request in requests for command in request.commands]
        try:
            with database.translated(self._path):
                replies = batch.apply(connection, self._clock, commands)
        except Exception as error:
            self._isolate(connection, requests, error)
            return
        self._committed(commands, replies)
        start = 0
        for request in requests:
            end = start + len(request.commands)
            request.answer(replies[start:end])
            start = end

    def _isolate(
        self, connection: sqlite3.Connection, requests: list[PendingBatch], error: Exception
    ) -> None:
        """Batches that failed in one transaction are tried once more, each alone."""
        if len(requests) == 1:
            requests[0].answer(error)
            return
        for request in requests:
            self._commit(connection, [request])
