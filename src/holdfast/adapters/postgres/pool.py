"""A bounded number of connections that belong to one event loop."""

from __future__ import annotations

import asyncio

import psycopg

from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.connection import Connection, Parameters, ServerError
from holdfast.adapters.postgres.database import explain, explain_connecting
from holdfast.errors import StoreUnavailable


class ConnectionPool:
    """Connects when needed, forgets what was lost, and lends the connection that was used last: it
    is the warmest.

    There are `size` places. Each is free, with an idle connection or with none, or taken by a call
    that goes on; a call whose caller gave up keeps its place until it ends."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self._size = size
        self._free: asyncio.LifoQueue[Connection | None] = asyncio.LifoQueue()
        for _ in range(size):
            self._free.put_nowait(None)
        self._busy: set[Connection] = set()
        self._all: set[Connection] = set()
        self._closed = False

    async def call(self, sql: bytes, parameters: Parameters = ()) -> bytes:
        """Execute one statement, which answers one value, in a transaction of its own.

        Raises ServerError for what is worth another try, and for a unique violation.
        """
        connection = await self._take()
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
        for _ in range(self._size):  # not for ever: a call ends with its timeout
            connection = await self._free.get()
            if connection is not None:
                connection.close()

    def abandon(self) -> None:
        """Close every connection at once: their event loop has ended."""
        self._closed = True
        for connection in list(self._all):
            connection.close()

    async def _take(self) -> Connection:
        connection = await self._free_place()
        try:
            if self._closed:
                raise StoreUnavailable(f"the store {self._address.shown} is closed")
            if connection is None or not connection.is_alive():
                connection = await Connection.make(self._address, self._release, self._forget)
        except BaseException as error:
            self._free.put_nowait(connection)
            if isinstance(error, psycopg.Error | OSError | TimeoutError):
                raise explain_connecting(error, self._address.shown) from None
            raise
        self._all.add(connection)
        self._busy.add(connection)
        return connection

    async def _free_place(self) -> Connection | None:
        if not self._free.empty():
            return self._free.get_nowait()
        try:
            async with asyncio.timeout(self._address.timeout):
                return await self._free.get()
        except TimeoutError:
            raise StoreUnavailable(
                f"all {self._size} connections to {self._address.shown} stayed busy for "
                f"{self._address.timeout:g} s; "
                "nothing was accepted. Raise pool= or timeout= in the store's URL, or look for "
                "what blocks the server"
            ) from None

    def _release(self, connection: Connection) -> None:
        self._busy.discard(connection)
        self._free.put_nowait(connection)

    def _forget(self, connection: Connection) -> None:
        """One that is lost while it is idle keeps its place, until somebody takes that."""
        self._all.discard(connection)
        if connection in self._busy:
            self._busy.discard(connection)
            self._free.put_nowait(None)


CONFLICTS = frozenset(("40001", "40P01"))
"""Nothing was written because somebody else did something at the same moment: worth another try."""

UNIQUE_VIOLATION = "23505"
"""Nothing was written because something is there already."""

FATAL = frozenset(("25006", "57P01", "57P02", "57P03", "57P05"))
"""The server can't serve this connection any more: it shuts down, or has become a read-only
standby."""
