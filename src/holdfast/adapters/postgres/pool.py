"""A bounded number of connections that belong to one event loop."""

from __future__ import annotations

import asyncio
from collections import deque

import psycopg

from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.connection import Connection, Parameters, ServerError
from holdfast.adapters.postgres.database import explain, explain_connecting
from holdfast.errors import StoreUnavailable


class ConnectionPool:
    """Connects when needed, forgets what was lost, and lends the connection that was used last: it
    is the warmest."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self._size = size
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._connecting = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._closed = False
        self._empty: asyncio.Event | None = None

    async def call(self, sql: bytes, parameters: Parameters = ()) -> bytes:
        """Execute one statement, which answers one value, in a transaction of its own.

        Raises ServerError for what is worth another try, and for a unique violation.
        """
        connection = self._idle_connection() or await self._take()
        try:
            answer = await connection.call(sql, parameters)
        except ServerError as error:
            if error.sqlstate in FATAL:
                connection.close()
            if error.sqlstate in CONFLICTS or error.sqlstate == UNIQUE_VIOLATION:
                raise
            raise explain(error, self._address.shown) from None
        assert answer is not None, "every statement answers a value"
        return answer

    async def close(self) -> None:
        """Let what is under way end, then close every connection."""
        self._closed = True
        for connection in list(self._idle):
            connection.close()
        while self._wake(None):
            pass
        if self._all:
            self._empty = asyncio.Event()
            await self._empty.wait()  # not for ever: a call ends with its time-out

    def abandon(self) -> None:
        """Close every connection at once: their event loop has ended."""
        self._closed = True
        for connection in list(self._all):
            connection.close()

    def _idle_connection(self) -> Connection | None:
        while self._idle:
            idle = self._idle.pop()
            if idle.is_alive():
                return idle
        return None

    async def _take(self) -> Connection:
        while True:
            if self._closed:
                raise StoreUnavailable(f"the store {self._address.shown} is closed")
            if idle := self._idle_connection():
                return idle
            if len(self._all) + self._connecting < self._size:
                return await self._connect()
            connection = await self._wait()
            if connection is not None and connection.open:
                return connection

    async def _connect(self) -> Connection:
        self._connecting += 1
        try:
            connection = await Connection.make(self._address, self._give_back, self._forget)
        except (psycopg.Error, OSError, TimeoutError) as error:
            self._wake(None)
            raise explain_connecting(error, self._address.shown) from None
        finally:
            self._connecting -= 1
        self._all.add(connection)
        return connection

    async def _wait(self) -> Connection | None:
        """A connection that somebody gave back, or None when it is worth looking again."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._address.timeout):
                return await turn
        except TimeoutError:
            self._decline(turn)
            raise StoreUnavailable(
                f"all {self._size} connections to {self._address.shown} stayed busy for "
                f"{self._address.timeout:g} s; "
                "nothing was accepted. Raise pool= or timeout= in the store's URL, or look for "
                "what blocks the server"
            ) from None
        except asyncio.CancelledError:
            self._decline(turn)
            raise

    def _decline(self, turn: asyncio.Future[Connection | None]) -> None:
        """Pass on what was handed to somebody who no longer wants it."""
        if turn.done() and not turn.cancelled():
            connection = turn.result()
            if connection is None:
                self._wake(None)
            else:
                self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
        elif connection.open and not self._wake(connection):
            self._idle.append(connection)

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._wake(None)
        if self._empty is not None and not self._all:
            self._empty.set()

    def _wake(self, connection: Connection | None) -> bool:
        """Hand a connection, or the right to make one, to whoever waits longest. Whether anybody
        took it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False


CONFLICTS = frozenset(("40001", "40P01"))
"""Nothing was written because somebody else did something at the same moment: worth another try."""

UNIQUE_VIOLATION = "23505"
"""Nothing was written because something is there already."""

FATAL = frozenset(("25006", "57P01", "57P02", "57P03", "57P05"))
"""The server can't serve this connection any more: it shuts down, or has become a read-only
standby."""
