"""What the tests of the PostgreSQL store share: a schema of their own on a real server, a session
beside the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from tests import postgres_server

from holdfast.adapters.postgres import statements
from holdfast.adapters.postgres.address import parse
from holdfast.adapters.postgres.batch import batch_of
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.model.commands import Command, Reply

SOON = 10.0


class Place:
    """A schema of the shared server, and ways to reach it."""

    def __init__(self, server: postgres_server.PostgresServer, schema: str) -> None:
        self.server = server
        self.schema = schema

    def url(self, **parameters: str) -> str:
        """Its connections carry the schema's name."""
        return self.server.url(self.schema, **{"application_name": self.schema, **parameters})

    @asynccontextmanager
    async def store(self, **parameters: str) -> AsyncIterator[PostgresStore]:
        store = PostgresStore(self.url(**parameters))
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    def session(self) -> Session:
        return Session(self)

    def value(self, sql: str) -> Any:
        """The first column of the first row."""
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute(f'SET search_path TO "{self.schema}"')
            row = connection.execute(sql).fetchone()  # type: ignore[arg-type]
            return row[0] if row else None


class Session:
    """A connection with a transaction that stays open until the test ends it: somebody in the
    middle of something."""

    def __init__(self, place: Place) -> None:
        self._connection = psycopg.connect(place.server.url())
        self._connection.execute(f'SET search_path TO "{place.schema}"')
        self._statements = statements.load(parse(place.url()))

    def apply(self, *commands: Command) -> list[Reply]:
        batch = batch_of(commands)
        statement, parameters = batch.call({"wait": "5000"}, prepared=False)
        sql = self._statements[statement].decode().replace("$1", "%s").replace("$2", "%s")
        given = [parameter.decode() for parameter in parameters if parameter is not None]
        row = self._connection.execute(sql, given).fetchone()  # type: ignore[arg-type]
        assert row is not None
        return batch.replies(row[0].encode())

    def execute(self, sql: str) -> None:
        self._connection.execute(sql)  # type: ignore[arg-type]

    def row(self, sql: str) -> Any:
        return self._connection.execute(sql).fetchone()  # type: ignore[arg-type]

    def rollback(self) -> None:
        self._connection.rollback()

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def place() -> Place:
    return Place(postgres_server.shared_server(), postgres_server.fresh_schema())


@pytest.fixture
def own_server() -> Iterator[postgres_server.PostgresServer]:
    """A server that the test may kill."""
    server = postgres_server.PostgresServer("fsync=off").create()
    try:
        yield server
    finally:
        server.end()


async def until(
    true: Callable[[], Any] | Callable[[], Awaitable[Any]], patience: float = SOON
) -> None:
    """Look until it is true; a test that waits in vain fails."""
    async with asyncio.timeout(patience):
        while True:
            found = true()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.005)


def waiting(place: Place) -> int:
    """How many statements about this schema wait for somebody's lock."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        f"""AND query LIKE '%"{place.schema}"%' AND pid <> pg_backend_pid()"""
    )
    return place.value(sql)
