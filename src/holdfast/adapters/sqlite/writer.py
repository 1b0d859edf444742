"""The writer thread: whatever is waiting when it wakes up goes into one transaction (group commit)."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.adapters.sqlite import batch, database
from holdfast.errors import StoreUnavailable
from holdfast.model.clock import Clock
from holdfast.ports.commands import Command, Reply

MAX_COMMANDS = 128
"""A full batch is not made fuller: while the next one is written, those who waited for this one can go on."""


class Request:
    """A batch on its way, and the future that its caller awaits in its own event loop."""

    __slots__ = ("commands", "future", "loop")

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Reply]] = self.loop.create_future()

    def answer(self, replies: list[Reply] | BaseException) -> None:
        try:
            self.loop.call_soon_threadsafe(self._resolve, replies)
        except RuntimeError:  # the caller's loop is closed: nobody waits any more
            pass

    def _resolve(self, replies: list[Reply] | BaseException) -> None:
        if self.future.done():
            return
        if isinstance(replies, BaseException):
            self.future.set_exception(replies)
        else:
            self.future.set_result(replies)


class Writer:
    """Owns the one connection that writes. `committed` is told on its thread what each transaction did."""

    def __init__(self, path: str, clock: Clock, committed: Callable[[Sequence[Command]], None]) -> None:
        self._path = path
        self._clock = clock
        self._committed = committed
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="holdfast-sqlite-writer", daemon=True)
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def submit(self, commands: Sequence[Command]) -> asyncio.Future[list[Reply]]:
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} is closed")
        request = Request(commands)
        self._requests.put(request)
        return request.future

    def stop(self) -> None:
        """Finish what is queued, then close the connection."""
        self._closed = True
        self._requests.put(None)
        self._thread.join()

    def _work(self) -> None:
        connection = database.connect(self._path)
        try:
            while (request := self._requests.get()) is not None:
                self._commit(connection, self._collect(request))
        finally:
            connection.close()

    def _collect(self, first: Request) -> list[Request]:
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

    def _commit(self, connection: sqlite3.Connection, requests: list[Request]) -> None:
        commands: list[Any] = [command for request in requests for command in request.commands]
        try:
            with database.translated(self._path):
                replies = batch.apply(connection, self._clock, commands)
        except Exception as error:
            self._isolate(connection, requests, error)
            return
        self._committed(commands)
        start = 0
        for request in requests:
            end = start + len(request.commands)
            request.answer(replies[start:end])
            start = end

    def _isolate(self, connection: sqlite3.Connection, requests: list[Request], error: Exception) -> None:
        """Nobody suffers for a neighbour's batch: what failed together is tried once alone."""
        if len(requests) == 1:
            requests[0].answer(error)
            return
        for request in requests:
            self._commit(connection, [request])
