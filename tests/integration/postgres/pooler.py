"""A pooler in transaction mode, as small as it can be: many clients, few server connections,
changed after every transaction and wiped clean in between. Whatever relies on a session breaks
behind it."""

from __future__ import annotations

import asyncio
import re
import struct
from contextlib import suppress
from pathlib import Path

SSL_REQUEST, CANCEL_REQUEST = 80877103, 80877102
STARTUP = b"\0\3\0\0user\0postgres\0database\0postgres\0client_encoding\0UTF8\0\0"
DISCARD = b"DISCARD ALL\0"
_KEY = re.compile(rb"(K\0\0\0\x0c)....", re.DOTALL)


class Server:
    """One connection to the real server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def make(cls, socket: Path) -> tuple[Server, bytes]:
        """A connection, and what the server says to whoever connects."""
        server = cls(*await asyncio.open_unix_connection(str(socket)))
        server.writer.write(struct.pack("!I", len(STARTUP) + 4) + STARTUP)
        greeting = b""
        while not (message := await server.receive()).startswith(b"Z"):
            greeting += message
        return server, greeting + message

    async def receive(self) -> bytes:
        head = await self.reader.readexactly(5)
        return head + await self.reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)

    async def wipe(self) -> None:
        self.writer.write(b"Q" + struct.pack("!I", len(DISCARD) + 4) + DISCARD)
        while not (await self.receive()).startswith(b"Z"):
            pass


class Pooler:
    """Listens in a folder like a server of its own.

    Clients are told a process number that no server has.
    """

    def __init__(self, server_socket: Path, folder: Path, size: int = 2) -> None:
        self._server_socket = server_socket
        self.folder = folder
        self._size = size
        self._servers: list[Server] = []
        self._idle: asyncio.Queue[Server] = asyncio.Queue()
        self._greeting = b""
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Pooler:
        for _ in range(self._size):
            server, greeting = await Server.make(self._server_socket)
            self._greeting = _KEY.sub(rb"\1\0\0\0\0", greeting)
            self._servers.append(server)
            self._idle.put_nowait(server)
        self._listener = await asyncio.start_unix_server(
            self._accept, str(self.folder / ".s.PGSQL.5432")
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for server in self._servers:
            server.writer.close()
            await server.writer.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                if await self._greet(reader, writer):
                    await self._serve(reader, writer)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:
            length, code = struct.unpack("!II", await reader.readexactly(8))
            await reader.readexactly(length - 8)
            if code == CANCEL_REQUEST:
                return False
            if code != SSL_REQUEST:
                writer.write(self._greeting)
                return True
            writer.write(b"N")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lend a server for each transaction."""
        while True:
            first = await _message(reader)
            if first.startswith(b"X"):
                return
            server = await self._idle.get()
            await self._pass_on(first, reader, writer, server)
            await server.wipe()
            self._idle.put_nowait(server)

    async def _pass_on(
        self,
        first: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: Server,
    ) -> None:
        message, status = first, b""
        while status != b"I":
            server.writer.write(message)
            if message[:1] in b"SQ":  # the client waits for the answer
                while not (answer := await server.receive()).startswith(b"Z"):
                    writer.write(answer)
                writer.write(answer)
                status = answer[5:6]
            if status != b"I":
                message = await _message(reader)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
