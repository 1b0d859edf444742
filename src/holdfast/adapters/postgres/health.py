"""How a PostgreSQL server is, from where this process stands: what breaks stores on it in
practice."""

from __future__ import annotations

import time
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from holdfast.adapters.postgres import database
from holdfast.adapters.postgres.address import Address, parse
from holdfast.adapters.postgres.connection import ServerError
from holdfast.model.duration import humanise
from holdfast.model.ids import new_token
from holdfast.ports.health import (
    SCHEMA,
    Finding,
    Findings,
    abandoned,
    clock_difference,
    is_remote,
    make_finding,
    milliseconds,
    open_air,
    round_trip,
)

EXTRA_CONNECTIONS = 2
"""Connections of a process beside its pool: for other threads, and to listen."""
LONG = 300.0
"""Seconds after which a transaction holds up vacuum noticeably."""
NOTIFY_TIMEOUT = 2.0
"""How long to wait for our own notification, in seconds."""
SHORT = 2000
"""Milliseconds of statement_timeout that a large batch may need."""


async def findings(url: str) -> Findings:
    address = parse(url)
    began = time.perf_counter()
    link = await database.connect(address)
    took = time.perf_counter() - began
    try:
        async for finding in _looked_at(link, address, took):
            yield finding
    except psycopg.Error as error:
        raise database.explain(
            ServerError(error.sqlstate or "XX000", str(error)), address.shown
        ) from None
    finally:
        await link.close()


async def _looked_at(link: AsyncConnection, address: Address, connected: float) -> Findings:
    yield await _reachable(link, connected)
    settings = (await database.look_at(link, address)).settings  # raises what `open` would
    yield make_finding("server", f"PostgreSQL {settings['server_version']}")
    role = await _primary(link)
    yield role
    yield _encrypted(link, address)
    yield clock_difference(await _ahead(link))
    yield _durable(settings)
    yield _vacuum(settings)
    yield _lock_timeouts(settings)
    yield await _connections(link, address)
    yield await _pooler(link)
    yield await _wake_ups(link, address)
    yield await _long_transactions(link)
    rights = await _rights(link, address)
    yield rights
    if role.status == rights.status == "ok":  # whoever may not use the schema can't look into it
        schema = await _schema(link, address)
        yield schema
        if schema.status == "ok":
            yield await _leases(link, address)


async def _fetch_row(link: AsyncConnection, sql: LiteralString, *values: Any) -> tuple[Any, ...]:
    row = await (await link.execute(sql, values or None)).fetchone()
    assert row is not None, "these queries answer one row"
    return row


# --- the server -----------------------------------------------------------------------------------


async def _reachable(link: AsyncConnection, connected: float) -> Finding:
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        await link.execute("SELECT 1")
        times.append(time.perf_counter() - began)
    return round_trip(times, connected)


async def _primary(link: AsyncConnection) -> Finding:
    standby, read_only = await _fetch_row(
        link, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    )
    return make_finding(
        "role",
        "a standby" if standby else "read-only" if read_only else "primary",
        fail=standby or read_only,
        why="a store has to be written to",
        fix="name the primary; with several hosts in the URL target_session_attrs=read-write "
        "finds it. Read-only for another reason: ALTER ROLE … RESET default_transaction_read_only",
    )


def _encrypted(link: AsyncConnection, address: Address) -> Finding:
    return open_air(
        any(is_remote(host) for host in hosts_of(address)), bool(link.pgconn.ssl_in_use)
    )


def hosts_of(address: Address) -> list[str]:
    return str(conninfo_to_dict(address.conninfo).get("host", "")).split(",")


async def _ahead(link: AsyncConnection) -> float:
    before = time.time()
    (server_time,) = await _fetch_row(link, "SELECT extract(epoch FROM clock_timestamp())::float8")
    return server_time - (before + time.time()) / 2


def _durable(settings: dict[str, str]) -> Finding:
    names = ("fsync", "full_page_writes", "synchronous_commit")
    seen = ", ".join(f"{name} {settings[name]}" for name in names)
    asks = (
        "; holdfast asks for each commit to be on disk"
        if settings["synchronous_commit"] == "off"
        else ""
    )
    return make_finding(
        "durability",
        seen + asks,
        fail=settings["fsync"] == "off" or settings["full_page_writes"] == "off",
        why="a power cut can lose runs that were accepted, or damage the whole database",
        fix="set fsync = on and full_page_writes = on in postgresql.conf, then reload",
    )


def _vacuum(settings: dict[str, str]) -> Finding:
    on = settings["autovacuum"] == settings["track_counts"] == "on"
    return make_finding(
        "autovacuum",
        "on"
        if on
        else f"autovacuum {settings['autovacuum']}, track_counts {settings['track_counts']}",
        warn=not on,
        why="queues change the same rows all the time: without vacuum every claim gets slower by "
        "the hour",
        fix="set autovacuum = on and track_counts = on in postgresql.conf, then reload",
    )


def _lock_timeouts(settings: dict[str, str]) -> Finding:
    limit = int(settings["statement_timeout"])
    return make_finding(
        "statement_timeout",
        f"{limit} ms" if limit else "none",
        warn=0 < limit < SHORT,
        why="a large batch that is cut off is sent again and cut off again",
        fix="ALTER ROLE … SET statement_timeout = 0; the store's own timeout covers it",
    )


# --- connections ----------------------------------------------------------------------------------


async def _connections(link: AsyncConnection, address: Address) -> Finding:
    most, reserved, used = await _fetch_row(
        link,
        "SELECT current_setting('max_connections')::int, "
        "current_setting('superuser_reserved_connections')::int, "
        "(SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend')",
    )
    free, needed = most - reserved - used, address.pool + EXTRA_CONNECTIONS
    return make_finding(
        "connections",
        f"{used} of {most} in use; a process takes up to {needed}, so there is room for "
        f"{max(0, free) // needed} more",
        warn=free < needed,
        why="a worker that gets no connection accepts nothing and executes nothing",
        fix="raise max_connections, lower pool= in the URL, start fewer processes, or put a "
        "pooler in front",
    )


async def _pooler(link: AsyncConnection) -> Finding:
    """A pooler gives out process numbers of its own, or lends another connection each time."""
    numbers = [await _fetch_row(link, "SELECT pg_backend_pid()") for _ in range(3)]
    return make_finding(
        "pooler",
        "none in between"
        if set(numbers) == {(link.pgconn.backend_pid,)}
        else "this connection goes through a pooler, which is fine",
    )


async def _wake_ups(link: AsyncConnection, address: Address) -> Finding:
    if address.listen == "":
        return make_finding("notifications", "listen=off: idle workers look every 50 ms instead")
    took = await _notified(link, address)
    return make_finding(
        "notifications",
        "arrive in " + milliseconds(took)
        if took is not None
        else f"none arrived within {NOTIFY_TIMEOUT:g} s",
        warn=took is None,
        why="without them every idle worker asks the server 20 times a second; a pooler in "
        "transaction mode takes LISTEN and never delivers anything",
        fix="add listen=host:port of the server itself to the store's URL, past the pooler",
    )


async def _notified(link: AsyncConnection, address: Address) -> float | None:
    """The seconds until our own notification came; None when it did not."""
    channel = f"holdfast_doctor_{new_token()[:12].lower()}"
    listener = await database.connect(address, address.listen)
    try:
        await listener.execute(f'LISTEN "{channel}"')  # type: ignore[arg-type]
        began = time.perf_counter()
        await link.execute("SELECT pg_notify(%s, '')", [channel])
        async for _ in listener.notifies(timeout=NOTIFY_TIMEOUT, stop_after=1):
            return time.perf_counter() - began
        return None
    finally:
        await listener.close()


async def _long_transactions(link: AsyncConnection) -> Finding:
    oldest, session = await _fetch_row(
        link,
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8, "
        "(array_agg(format('pid %%s of %%s, %%s', pid, usename, state) ORDER BY xact_start))[1] "
        "FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND "
        "backend_type = %s",
        "client backend",
    )
    return make_finding(
        "long transactions",
        f"the oldest lasts {humanise(oldest)} ({session})" if session else "none",
        warn=oldest > LONG,
        why="what has ended since it began can't be cleaned up: claims get slower until it ends",
        fix="end it: SELECT pg_terminate_backend(pid). idle_in_transaction_session_timeout "
        "prevents forgotten ones",
    )


# --- the schema -----------------------------------------------------------------------------------


async def _schema(link: AsyncConnection, address: Address) -> Finding:
    version, newest = await database.stored_version(link, address), database.migrations()[-1].number
    await database.refuse_other_schema(link, address, version, newest)
    behind = f", here {newest}" if version != newest else ""
    return make_finding(
        SCHEMA,
        f"{address.schema}: version {version}{behind}"
        if version
        else f"{address.schema} is not there yet",
        warn=version < newest,
        why="the next process that opens the store brings it up to date, while workers of the "
        "version before go on",
        fix="start a worker, or `holdfast doctor --fix`",
    )


TABLES = (
    "SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class c "
    "WHERE c.relnamespace = to_regnamespace(%s) AND CASE WHEN c.relkind = 'S' THEN "
    "NOT (has_sequence_privilege(c.oid, 'USAGE') AND has_sequence_privilege(c.oid, 'SELECT')) "
    "WHEN c.relkind IN ('r', 'p') AND c.relname <> 'migrations' THEN "
    "NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') "
    "AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')) END"
)


async def _rights(link: AsyncConnection, address: Address) -> Finding:
    user, exists = await _fetch_row(
        link,
        "SELECT quote_ident(current_user), to_regnamespace(%s) IS NOT NULL",
        address.quoted_schema,
    )
    return await (_may_use if exists else _may_create)(link, address, user)


async def _may_use(link: AsyncConnection, address: Address, user: str) -> Finding:
    (usable,) = await _fetch_row(link, "SELECT has_schema_privilege(%s, 'USAGE')", address.schema)
    (lacking,) = (
        await _fetch_row(link, TABLES, address.quoted_schema) if usable else ("anything in it",)
    )
    return make_finding(
        "rights",
        f"{user} may not use {lacking}"
        if lacking
        else f"{user} may use the schema {address.schema}",
        fail=bool(lacking),
        why="every command reads and writes these tables and sequences",
        fix=f"as their owner: GRANT USAGE ON SCHEMA {address.quoted_schema} TO {user}; GRANT "
        f"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {address.quoted_schema} TO "
        f"{user}; GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {address.quoted_schema} TO {user}",
    )


async def _may_create(link: AsyncConnection, address: Address, user: str) -> Finding:
    (may,) = await _fetch_row(link, "SELECT has_database_privilege(current_database(), 'CREATE')")
    return make_finding(
        "rights",
        f"{user} may {'' if may else 'not '}create the schema {address.schema}",
        fail=not may,
        why="the first process that opens the store creates its tables",
        fix=f"as somebody who may: CREATE SCHEMA {address.quoted_schema} AUTHORIZATION {user}",
    )


async def _leases(link: AsyncConnection, address: Address) -> Finding:
    cursor = await link.execute(
        f"SELECT count(*) FROM {address.quoted_schema}.open_runs "  # type: ignore[arg-type]
        "WHERE state = 'running' AND lease_until < extract(epoch FROM clock_timestamp()) - 60"
    )
    row = await cursor.fetchone()
    return abandoned(row[0] if row else 0)
