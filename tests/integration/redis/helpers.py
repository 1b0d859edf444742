"""What the Redis tests share: stores on real servers, and a network between the two that misbehaves
on request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from tests.redis_server import RedisServer, fresh_prefix, shared_server

from holdfast.adapters.redis.store import RedisStore
from holdfast.model.commands import Claim, SaveCheckpoint, Submit

RECORD = (
    '{"step":"s","status":"completed","started":1700000000.25,"finished":1700000001.5,'
    '"duration":1.25,"epoch":1}'
)


@asynccontextmanager
async def opened(store: RedisStore) -> AsyncIterator[RedisStore]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def a_store(**parameters: str) -> AsyncIterator[RedisStore]:
    """On the shared server, with keys of its own."""
    async with opened(RedisStore(shared_server().url(fresh_prefix(), **parameters))) as store:
        yield store


@contextmanager
def a_server(*options: str) -> Iterator[RedisServer]:
    server = RedisServer(*options).start()
    try:
        yield server
    finally:
        server.end()


def a_submit(id: str, **fields: object) -> Submit:
    defaults = {
        "tenant": "acme",
        "pipeline": "p",
        "lane": "default",
        "input": "1",
        "fingerprint": "f",
    }
    return Submit(id, **{**defaults, **fields})  # type: ignore[arg-type]


def a_claim(limit: int = 1, ttl: float = 30.0) -> Claim:
    return Claim("w1", "default", ["p"], limit, ttl)


def a_checkpoint(
    run: str, epoch: int, step: str = "s", key: str = "", value: str = "1"
) -> SaveCheckpoint:
    return SaveCheckpoint(run, epoch, step, key, value, "c", "t", "f", RECORD)


class Network:
    """A way to a server on which answers can be lost and connections cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server
        self._writers: set[asyncio.StreamWriter] = set()
        self.lose_answers = False
        """Commands arrive, and the connection breaks before their answer gets through."""
        self.port = 0

    async def __aenter__(self) -> Network:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, back}
        answers = asyncio.create_task(self._answers(there, writer))
        try:
            while data := await reader.read(65536):
                back.write(data)
        except ConnectionError:
            pass
        finally:
            back.close()
            await asyncio.wait([answers])
            self._writers -= {writer, back}

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if self.lose_answers:
                    break
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
