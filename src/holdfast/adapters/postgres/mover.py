"""Moving what is in a schema: rows are read and written in pages, one transaction a page.

The mark is a row of `meta`, and triggers that exist only while it does: whoever writes to a held
store is refused by the server itself, and a store that is not held pays nothing for it. Creating a
trigger waits for the transactions that are under way, so nothing is written after `hold` has
answered. A mover's transactions say that they are one (`holdfast.mover`, for the transaction only:
safe behind a pooler)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor
from psycopg.sql import SQL, Identifier, Literal

from holdfast.adapters import decisions
from holdfast.adapters.postgres import database, reads, statements
from holdfast.adapters.postgres.address import Address, parse
from holdfast.adapters.postgres.client import Client
from holdfast.adapters.postgres.connection import Parameters, ServerError
from holdfast.adapters.postgres.rows import adopt, export, one_row, rows
from holdfast.adapters.postgres.text import seal_text
from holdfast.errors import HoldfastError
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import Sweep
from holdfast.ports.mover import Holder, Kind, MoveMark, MoveState, Numbers, Page

ALL = 1 << 40
LOCK_TIMEOUT = "20s"
"""How long to wait for transactions that are under way when the store is held."""


class PostgresMover:
    """A `Mover` of a store in a schema of a PostgreSQL database."""

    def __init__(self, url: str | Address, clock: Clock | None = None) -> None:
        self.address = url if isinstance(url, Address) else parse(url)
        self._clock = None if clock is None or isinstance(clock, SystemClock) else clock
        self._link: AsyncConnection

    # --- life -------------------------------------------------------------------------------------

    async def exists(self) -> bool:
        self._link = await database.connect(self.address)
        try:
            return await database.stored_version(self._link, self.address) > 0
        finally:
            await self._link.close()

    async def open(self) -> None:
        self._server = await database.prepare(self.address)
        self._link = await database.connect(self.address)

    async def close(self) -> None:
        await self._link.close()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncCursor]:
        """A transaction that the triggers let pass."""
        try:
            async with self._link.transaction(), self._link.cursor() as cursor:
                await cursor.execute(
                    SQL("SET LOCAL search_path TO {}, pg_temp").format(
                        Identifier(self.address.schema)
                    )
                )
                await cursor.execute("SET LOCAL holdfast.mover = 'at work'")
                if self._server.must_ask_for_sync:
                    await cursor.execute("SET LOCAL synchronous_commit = 'on'")
                yield cursor
        except psycopg.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: psycopg.Error) -> HoldfastError:
        if error.sqlstate is None:
            return database.explain_connecting(error, self.address.shown)
        return database.explain(ServerError(error.sqlstate, str(error)), self.address.shown)

    # --- the mark ---------------------------------------------------------------------------------

    async def move_state(self) -> MoveState:
        async with self._transaction() as cursor:
            mark, empty, count, last_run, position = await one_row(cursor, _STANDING)
            held = await rows(cursor, _HOLDERS, {"mono": await self._mono(cursor)})
        holders = [Holder(*row) for row in held]
        numbers = Numbers(position, position)  # here they are one
        return MoveState(reads.mark(mark.encode()), empty, count, numbers, last_run, holders)

    async def hold(self, mark: MoveMark) -> None:
        async with self._transaction() as cursor:
            await cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            tables = await _tables(cursor)
            await cursor.execute(
                SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(SQL(", ").join(tables))
            )
            await self._end_leases(cursor)
            await _drop_triggers(cursor, tables)
            await cursor.execute(_REFUSE)
            for table in tables:
                await cursor.execute(_TRIGGER.format(table, Literal(mark.meaning)))
            await _put(cursor, "mark", msgspec.json.encode(mark).decode())

    async def _end_leases(self, cursor: AsyncCursor) -> None:
        await cursor.execute("UPDATE open_runs SET lease_until = 0 WHERE state = 'running'")
        await cursor.execute("UPDATE locks SET token = NULL, lease_until = NULL")
        known, transaction = statements.load(self.address), _Transaction(cursor)
        client = Client(self.address, transaction, known, self._server, "", self._clock)
        await decisions.decide_all(client, [Sweep(limit=ALL)])
        await client.close()

    async def release(self) -> None:
        async with self._transaction() as cursor:
            await cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            await _drop_triggers(cursor, await _tables(cursor))
            await cursor.execute("DELETE FROM meta WHERE name = 'mark'")

    # --- records ----------------------------------------------------------------------------------

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        async with self._transaction() as cursor:
            return await export(cursor, kind, await self._mono(cursor), after, limit)

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        async with self._transaction() as cursor:
            await adopt(cursor, kind, await self._mono(cursor), records)

    async def continue_from(self, numbers: Numbers) -> None:
        async with self._transaction() as cursor:
            await cursor.execute(_POSITIONS, {"least": max(numbers.seq, numbers.position)})

    async def _mono(self, cursor: AsyncCursor) -> float:
        if self._clock is not None:
            return self._clock.monotonic()
        [now] = await one_row(
            cursor, "SELECT extract(epoch FROM clock_timestamp())::double precision"
        )
        return now


class _Transaction:
    """What a client calls instead of connections of its own. Nobody else changes anything here."""

    def __init__(self, cursor: AsyncCursor) -> None:
        self._cursor = AsyncRawCursor(cursor.connection)

    async def call(self, sql: bytes, parameters: Parameters = ()) -> bytes:
        await self._cursor.execute(sql, [None if p is None else p.decode() for p in parameters])
        assert self._cursor.pgresult is not None
        return self._cursor.pgresult.get_value(0, 0) or b""

    async def close(self) -> None: ...


# --- what is known about the store ----------------------------------------------------------------

_STANDING = """
SELECT coalesce((SELECT value FROM meta WHERE name = 'mark'), ''),
       NOT EXISTS (SELECT FROM requests) AND NOT EXISTS (SELECT FROM dead_letters)
           AND NOT EXISTS (SELECT FROM audit),
       (SELECT count(*) FROM requests), (SELECT id FROM requests ORDER BY seq DESC LIMIT 1),
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM positions)
"""

_HOLDERS = """
SELECT what, who FROM (
    SELECT 1 AS kind, seq AS place, 'run ' || id AS what, coalesce(worker, '') AS who
    FROM open_runs WHERE state = 'running' AND lasts(lease_until, lease_ttl, %(mono)s)
    UNION ALL
    SELECT 2, row_number() OVER (ORDER BY name), 'lock ' || name, owner
    FROM locks WHERE token IS NOT NULL AND lasts(lease_until, lease_ttl, %(mono)s)) AS held
ORDER BY kind, place
"""

_POSITIONS = (
    "SELECT setval('positions', greatest(last_value, %(least)s)) FROM positions WHERE %(least)s > 0"
)


async def _put(cursor: AsyncCursor, name: str, value: str) -> None:
    sql = (
        "INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value "
        "= excluded.value"
    )
    await cursor.execute(sql, [name, seal_text(value)])


# --- triggers -------------------------------------------------------------------------------------

_REFUSE = """
CREATE OR REPLACE FUNCTION refuse_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('holdfast.mover', true) = 'at work' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = TG_ARGV[0];
END $$
"""

_TRIGGER = SQL(
    "CREATE TRIGGER held BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH STATEMENT EXECUTE "
    "FUNCTION refuse_held({})"
)


async def _tables(cursor: AsyncCursor) -> list[Identifier]:
    """All that hold something of the store, in the order in which a batch writes to them,
    roughly."""
    sql = (
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND "
        "relkind = 'r' "
        "AND relname NOT IN ('meta', 'migrations') ORDER BY oid"
    )
    return [Identifier(name) for (name,) in await rows(cursor, sql)]


async def _drop_triggers(cursor: AsyncCursor, tables: list[Identifier]) -> None:
    for table in tables:
        await cursor.execute(SQL("DROP TRIGGER IF EXISTS held ON {}").format(table))
    await cursor.execute("DROP FUNCTION IF EXISTS refuse_held()")
