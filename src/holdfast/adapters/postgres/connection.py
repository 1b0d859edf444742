"""One connection to the server, driven by one event loop through libpq's own asynchronous calls.

Why not asyncpg, and why not psycopg's cursors: measured on 2 cores with uvloop, one call with 15 kB
in and 32 bytes out, unprepared so that it is safe behind any pooler, a call cost 180 µs of
processor time and two round trips with asyncpg, 92 µs and one round trip with
`psycopg.AsyncConnection.execute`, 15 µs and one round trip like this. asyncpg with prepared
statements needed 108 µs, and its statements' names are not safe behind a pooler in transaction
mode. psycopg still makes the connection: it resolves names without blocking the loop, and libpq
knows TLS, passwords, several hosts and fail-over.

Nothing is prepared, and so nothing is left in a session: poolers need not be told from servers. It
would save 25 µs of the server's time for each call, a tenth of a lone command and a fiftieth of 50
together: the functions keep the plans of what they do by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import psycopg
from psycopg import AsyncConnection, pq

from holdfast.adapters.postgres.address import Address
from holdfast.errors import StoreUnavailable

Parameters = Sequence[bytes | None]
TRUSTED = 0.01
"""How long a connection is taken to be alive after an answer, in seconds."""
_SUCCESS = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class ServerError(Exception):
    """The server refused a statement. Nothing of it was written."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class Connection:
    """Serves one call at a time. A call whose caller gave up goes on, and the connection is idle
    when it ends.

    `on_idle` is called when a call has ended and the connection can be used again, `on_lost` once,
    when it can't."""

    def __init__(
        self,
        link: AsyncConnection,
        address: Address,
        on_idle: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._link = link
        self._pq = link.pgconn
        self._address = address
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reply: asyncio.Future[bytes | None] | None = None
        self._result: pq.abc.PGresult | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._overdue = 0.0
        self._answered = 0.0
        self._writing = False
        self.on_notice: Callable[[bytes], None] | None = None
        """Told the payload of every notification."""
        self._pq.nonblocking = 1
        self._socket = self._pq.socket
        self._loop.add_reader(self._socket, self._readable)
        self.open = True

    @classmethod
    async def make(
        cls,
        address: Address,
        on_idle: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
        conninfo: str | None = None,
    ) -> Connection:
        """Connect. Raises psycopg.Error or TimeoutError."""
        async with asyncio.timeout(address.connect_timeout):
            link = await AsyncConnection.connect(
                conninfo or address.conninfo, autocommit=True, prepare_threshold=None
            )
        return cls(link, address, on_idle, on_lost)

    def call(self, sql: bytes, parameters: Parameters = ()) -> asyncio.Future[bytes | None]:
        """Execute one statement; the answer is the first column of its first row."""
        assert self._reply is None, "one call at a time"
        reply = self._reply = self._loop.create_future()
        try:
            self._pq.send_query_params(sql, parameters)
            self._flush()
            self._overdue = self._loop.time() + self._address.timeout
            if self._timer is None:
                self._timer = self._loop.call_at(self._overdue, self._look_at_the_clock)
        except psycopg.Error as error:
            self._lose(str(error))
        return reply

    def is_alive(self) -> bool:
        """Whether an idle connection can be used, as far as the socket knows: a restart of the
        server shows here.

        One that has just answered is trusted: asking takes as long as a small batch takes to send.
        """
        if self._loop.time() - self._answered > TRUSTED:
            self._readable()  # a farewell, perhaps
            if self.open:
                self._readable()  # and the end after it
        return self.open

    def close(self) -> None:
        self._lose("it was closed")

    # --- what the loop tells us -------------------------------------------------------------------

    def _flush(self) -> None:
        """Send what the socket takes; the rest when it takes more."""
        unsent = self._pq.flush() == 1
        if unsent and not self._writing:
            self._loop.add_writer(self._socket, self._writable)
        elif not unsent and self._writing:
            self._loop.remove_writer(self._socket)
        self._writing = unsent

    def _writable(self) -> None:
        try:
            self._flush()
        except psycopg.Error as error:
            self._lose(str(error))

    def _readable(self) -> None:
        try:
            self._pq.consume_input()
            if self._writing:
                self._flush()
            # Also where nobody asked: a pooler gives them to whoever has the server just then, and
            # libpq keeps what is not taken.
            while (notice := self._pq.notifies()) is not None:
                if self.on_notice is not None:
                    self.on_notice(notice.extra)
            if self._reply is not None:
                self._collect()
            elif self._pq.status != pq.ConnStatus.OK:
                self._lose("the server closed the connection")
        except psycopg.Error as error:
            self._lose(str(error))

    def _collect(self) -> None:
        while not self._pq.is_busy():
            result = self._pq.get_result()
            if result is None:
                self._answer()
                return
            self._result = result

    def _answer(self) -> None:
        reply, result = self._reply, self._result
        self._reply = self._result = None
        self._answered = self._loop.time()
        if self._pq.status != pq.ConnStatus.OK or result is None:
            self._reply = reply
            self._lose(_text(result) or "the server closed the connection")
            return
        if reply is not None and not reply.done():
            if result.status in _SUCCESS:
                reply.set_result(result.get_value(0, 0) if result.ntuples else None)
            else:
                reply.set_exception(ServerError(_sqlstate(result), _text(result)))
        self._on_idle(self)

    def _look_at_the_clock(self) -> None:
        """One timer serves many calls: it is set anew when it goes off, not with every call."""
        self._timer = None
        if self._reply is None:
            return
        if self._loop.time() < self._overdue:
            self._timer = self._loop.call_at(self._overdue, self._look_at_the_clock)
        else:
            self._lose(f"no answer within {self._address.timeout:g} s")

    def _lose(self, reason: str) -> None:
        """This connection is over. Whether the server did what it was asked to is not known."""
        if not self.open:
            return
        self.open = False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        if self._timer is not None:
            self._timer.cancel()
        self._pq.finish()
        reply, self._reply = self._reply, None
        if reply is not None and not reply.done():
            reply.set_exception(
                StoreUnavailable(
                    f"the connection to {self._address.shown} was lost ({_first_line(reason)}); "
                    "what was under way may or may not have been written"
                )
            )
        self._on_lost(self)


def _sqlstate(result: pq.abc.PGresult) -> str:
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"XX000").decode()


def _text(result: pq.abc.PGresult | None) -> str:
    if result is None:
        return ""
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return primary.decode(errors="replace").strip()


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
