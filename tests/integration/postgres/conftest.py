"""What the tests of the PostgreSQL store share: a schema of their own on a real server, a session
beside the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import psycopg
import pytest
from tests import postgres_server

from holdfast.adapters import decisions
from holdfast.adapters.arranging import Group
from holdfast.adapters.decisions import LoadedFacts, Needs, Unit
from holdfast.adapters.postgres import batch, changes, facts, statements
from holdfast.adapters.postgres.address import parse
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.model.commands import Command, Prune, Wake

R = TypeVar("R")
SOON = 10.0


class Schema:
    """A schema of the shared server, and ways to reach it."""

    def __init__(self, server: postgres_server.PostgresServer, name: str) -> None:
        self.server = server
        self.name = name

    def url(self, **parameters: str) -> str:
        """Its connections carry the schema's name."""
        return self.server.url(self.name, **{"application_name": self.name, **parameters})

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
            connection.execute(f'SET search_path TO "{self.name}"')
            row = connection.execute(sql).fetchone()  # type: ignore[arg-type]
            return row[0] if row else None


class Session:
    """A connection with a transaction that stays open until the test ends it: somebody in the
    middle of something."""

    def __init__(self, schema: Schema) -> None:
        self._connection = psycopg.connect(schema.server.url())
        self._connection.execute(f'SET search_path TO "{schema.name}"')
        self._statements = statements.load(parse(schema.url()))

    def apply(self, *commands: Command[Any]) -> list[Any]:
        server = InSession(self._connection, self._statements)
        return driven(decisions.apply(server, commands, batch.kind_of))

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


class InSession:
    """Applies commands in a session's transaction."""

    def __init__(self, connection: psycopg.Connection, statements: dict[str, bytes]) -> None:
        self._connection = connection
        self._statements = statements

    def value(self, name: str, *parameters: Any) -> bytes:
        cursor = psycopg.RawCursor(self._connection)
        cursor.execute(self._statements[name], parameters)
        row = cursor.fetchone()
        assert row is not None
        return row[0].encode() if isinstance(row[0], str) else msgspec.json.encode(row[0])

    def call(self, envelope: dict[str, Any]) -> list[Any]:
        message = batch.sealed({**envelope, "wait": "5000"}).decode()
        return batch.unpack(self.value("apply", message))

    async def apply_native(self, groups: Sequence[Group[str]]) -> list[Any]:
        commands = [command for group in groups for command in group.commands]
        self._connection.execute("SAVEPOINT before")
        try:
            answers = self.call(batch.envelope(groups))
        except psycopg.errors.UniqueViolation:
            self._connection.execute("ROLLBACK TO before")
            return await decisions.apply(self, commands, batch.kind_without_repeats)
        pairs = zip(groups, answers, strict=True)
        return [reply for group, raw in pairs for reply in batch.replies(group, raw)]

    async def load(self, needs: Needs) -> LoadedFacts:
        return facts.loaded(self.value("facts", None, facts.question(needs).decode()), None)

    async def commit(self, loaded: LoadedFacts, units: Sequence[Unit], wake: Wake) -> list[bool]:
        return msgspec.json.decode(self.call(changes.envelope(loaded, units))[0], type=list[bool])

    async def ended_leases(self, limit: int) -> list[str]:
        return msgspec.json.decode(self.value("ended_leases", None, limit))

    async def expired(self, prune: Prune) -> list[str]:
        limits = (prune.keep, prune.keep_failed, -1, prune.limit)
        return msgspec.json.decode(self.value("expired", None, *limits))


def driven(coroutine: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine that waits for nothing but its turn."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


@pytest.fixture
def schema() -> Schema:
    return Schema(postgres_server.shared_server(), postgres_server.fresh_schema())


@pytest.fixture
def own_server() -> Iterator[postgres_server.PostgresServer]:
    """A server that the test may kill."""
    server = postgres_server.PostgresServer("fsync=off").create()
    try:
        yield server
    finally:
        server.end()


async def until(
    true: Callable[[], Any] | Callable[[], Awaitable[Any]], timeout: float = SOON
) -> None:
    """Look until it is true; a test that waits in vain fails."""
    async with asyncio.timeout(timeout):
        while True:
            value = true()
            if await value if isinstance(value, Awaitable) else value:
                return
            await asyncio.sleep(0.005)


def waiting(schema: Schema) -> int:
    """How many statements about this schema wait for somebody's lock."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        f"""AND query LIKE '%"{schema.name}"%' AND pid <> pg_backend_pid()"""
    )
    return schema.value(sql)
