"""Opening the database: checks, refusals, migrations, and errors that say what to do."""

from __future__ import annotations

import asyncio
from functools import partial

import psycopg
from psycopg import AsyncConnection, AsyncCursor

from holdfast.adapters.compatibility import FORMAT, FORMAT_NAME, OLDEST_NAME, refuse_unusable
from holdfast.adapters.migrations import load
from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.connection import ServerError
from holdfast.errors import ConfigurationError, HoldfastError, StoreUnavailable, Unwritable

OLDEST_SERVER = 130000
OLDEST_USABLE_SCHEMA = 1
"""Programs that know this schema or a later one can use what this one writes."""
migrations = partial(load, "holdfast.adapters.postgres")
MIGRATING = 0x686F6C64  # "hold": the advisory lock under which schemas are changed


class ServerInfo:
    """What was found out about the server when it was opened."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    @property
    def must_ask_for_sync(self) -> bool:
        """Whether commits here do not wait for the disk unless they are told to."""
        return self.settings["synchronous_commit"] == "off"

    @property
    def may_lose_power(self) -> bool:
        """Whether a power cut can lose what was answered, whatever we ask for."""
        return self.settings["fsync"] == "off" or self.settings["full_page_writes"] == "off"


async def prepare(address: Address) -> ServerInfo:
    """Check the server and bring the schema up to date. Raises ConfigurationError when it can't be
    used."""
    link = await connect(address)
    try:
        server = await look_at(link, address)
        await migrate(link, address)
        return server
    except psycopg.Error as error:
        problem = ServerError(error.sqlstate or "XX000", str(error))
        raise explain(problem, address.shown, opening=True) from None
    finally:
        await link.close()


async def connect(address: Address, conninfo: str | None = None) -> AsyncConnection:
    """One for looking and migrating; `conninfo` leads elsewhere. Raises ConfigurationError or
    StoreUnavailable."""
    try:
        async with asyncio.timeout(address.connect_timeout):
            return await AsyncConnection.connect(
                conninfo or address.conninfo, autocommit=True, prepare_threshold=None
            )
    except (psycopg.Error, OSError, TimeoutError) as error:
        raise explain_connecting(error, address.shown, opening=True) from None


SETTINGS = (
    "server_version", "server_version_num", "server_encoding", "transaction_isolation",
    "synchronous_commit", "fsync", "full_page_writes", "autovacuum", "track_counts",
    "statement_timeout",
)  # fmt: skip

LOOK_ALIKES = {
    "CockroachDB": "CockroachDB",
    "-YB-": "YugabyteDB",
    "Redshift": "Amazon Redshift",
    "Greenplum": "Greenplum",
    "Materialize": "Materialize",
    "RisingWave": "RisingWave",
    "CrateDB": "CrateDB",
    "QuestDB": "QuestDB",
    "openGauss": "openGauss",
    "GaussDB": "GaussDB",
}
"""Signs in the answer to `version()` by which databases that speak PostgreSQL's protocol, and are
something else, can be told."""


def look_alike(version: str) -> str | None:
    """What a server is that only looks like PostgreSQL; None if it is PostgreSQL."""
    for sign, name in LOOK_ALIKES.items():
        if sign in version:
            return name
    return None if version.startswith("PostgreSQL ") else version.partition(" (")[0] or "unknown"


async def refuse_look_alike(link: AsyncConnection, address: Address) -> None:
    """Before anything else is asked: what follows is meant for PostgreSQL."""
    row = await (await link.execute("SELECT version()")).fetchone()
    name = look_alike(str(row[0]) if row else "")
    if name is not None:
        raise ConfigurationError(
            f"{address.shown} is {name}, which only looks like PostgreSQL: the order of events "
            "rests on PostgreSQL's advisory locks and row locks. Use PostgreSQL 13 or newer"
        )


async def look_at(link: AsyncConnection, address: Address) -> ServerInfo:
    await refuse_look_alike(link, address)
    cursor = await link.execute(
        "SELECT name, setting FROM pg_settings WHERE name = ANY (%s)", [list(SETTINGS)]
    )
    settings = {str(name): str(value) for name, value in await cursor.fetchall()}
    _refuse_unsafe(settings, address.shown)
    return ServerInfo(settings)


def _refuse_unsafe(settings: dict[str, str], shown: str) -> None:
    if int(settings["server_version_num"]) < OLDEST_SERVER:
        raise ConfigurationError(
            f"{shown} is PostgreSQL {settings['server_version_num']}: holdfast needs 13 or newer"
        )
    if settings["server_encoding"] != "UTF8":
        raise ConfigurationError(
            f"{shown} stores text as {settings['server_encoding']}, which can't hold every "
            "character: create the database with ENCODING 'UTF8'"
        )
    if settings["transaction_isolation"] != "read committed":
        raise ConfigurationError(
            f"{shown} begins transactions as {settings['transaction_isolation']!r}, under which "
            "busy workers would refuse one another's commits: ALTER ROLE … IN DATABASE … SET "
            "default_transaction_isolation = 'read committed'"
        )


# --- migrations -----------------------------------------------------------------------------------


async def migrate(link: AsyncConnection, address: Address) -> None:
    """Bring the schema up to date in one transaction; concurrent openers wait for the first.

    A migration only adds, and a function that was released keeps its name and its meaning: what
    means something else gets another name. So workers of the version before go on with what they
    know, while it runs and after it. And it does not wait long for a table that somebody is using,
    because all others would wait behind it."""
    known = migrations()
    newest = known[-1].number
    version = await stored_version(link, address)
    if version == newest:
        await refuse_other_schema(link, address, version, newest)
        return
    async with link.transaction(), link.cursor() as cursor:
        await cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (MIGRATING, address.schema)
        )
        await cursor.execute("SET LOCAL lock_timeout = '5s'")
        version = await stored_version(link, address)
        await refuse_other_schema(link, address, version, newest)
        if version == 0:
            await _create(cursor, address)
        search_path = f"SET LOCAL search_path TO {address.quoted_schema}, pg_temp"
        await cursor.execute(search_path)  # type: ignore[arg-type]
        for number, name, sql in known:
            if number > version:
                await cursor.execute(sql.encode())
                await cursor.execute(
                    "INSERT INTO migrations (number, name) VALUES (%s, %s)", (number, name)
                )
        if version < newest:
            await cursor.executemany(
                "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET "
                "value = excluded.value",
                [(FORMAT_NAME, str(FORMAT)), (OLDEST_NAME, str(OLDEST_USABLE_SCHEMA))],
            )


_IS_THERE = (
    "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %s AND c.relname = %s"
)


async def _has(link: AsyncConnection, address: Address, table: str) -> bool:
    # not to_regclass: it may answer from before the lock
    cursor = await link.execute(_IS_THERE, [address.schema, table])
    return await cursor.fetchone() is not None


async def stored_version(link: AsyncConnection, address: Address) -> int:
    """The number of the newest migration that was applied; 0 for a schema that holds none."""
    if not await _has(link, address, "migrations"):
        return 0
    newest = f"SELECT max(number) FROM {address.quoted_schema}.migrations"
    cursor = await link.execute(newest)  # type: ignore[arg-type]
    row = await cursor.fetchone()
    return int(row[0] or 0) if row else 0


async def _create(cursor: AsyncCursor, address: Address) -> None:
    """Make the schema, unless it is there and empty; never mix with somebody else's tables."""
    schema = address.quoted_schema
    await cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [address.schema])
    if await cursor.fetchone() is None:
        await cursor.execute(f"CREATE SCHEMA {schema}")  # type: ignore[arg-type]
    await cursor.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace", [schema]
    )
    if await cursor.fetchone() != (0,):
        raise ConfigurationError(
            f"schema {schema} of {address.shown} holds tables of another program; nothing was "
            "changed. Choose "
            "another with ?schema=…"
        )
    await cursor.execute(
        f"CREATE TABLE {schema}.migrations "  # type: ignore[arg-type]
        "(number integer PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT "
        "clock_timestamp())"
    )


async def refuse_other_schema(
    link: AsyncConnection, address: Address, version: int, newest: int
) -> None:
    """Raise ConfigurationError for a store that this program can't use."""
    if version == 0:
        return
    noted: dict[str, str] = {}
    if await _has(link, address, "meta"):
        values = f"SELECT name, value FROM {address.quoted_schema}.meta"
        cursor = await link.execute(values)  # type: ignore[arg-type]
        noted = dict(await cursor.fetchall())
    refuse_unusable(noted, version, newest, address.shown)


# --- errors ---------------------------------------------------------------------------------------

WRONG_LOGIN = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "no password supplied",
    "SSL",
    "certificate",
)


def explain_connecting(error: Exception, shown: str, *, opening: bool = False) -> HoldfastError:
    """Why no connection could be made. A wrong login is a setting to fix when it shows at the
    start."""
    text = _one_line(str(error)) or "no answer in time"
    if opening and any(sign in text for sign in WRONG_LOGIN) and "could not connect" not in text:
        return ConfigurationError(
            f"{shown} can't be used: {text}. Check user, password, database and sslmode in the URL"
        )
    return StoreUnavailable(
        f"{shown} can't be reached: {text}; nothing was accepted. Is the server up?"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


HELD = "HF001"
"""What the triggers of a store raise that takes part in a move: see mover.py."""

UNWRITABLE = ("22", "23", "54")
"""Classes of refusals for what a command holds: bad data, broken constraints, limits passed."""

CAUSES = {
    "53100": "its disk is full; nothing was accepted. Free some space, then try again",
    "53300": "it has no connection left; nothing was accepted. Raise max_connections, or lower "
    "pool= in the URLs",
    "55P03": "a row stayed locked by somebody else; nothing was accepted. Does a psql session "
    "hold a transaction open?",
    "57014": "the statement was cancelled, by an administrator or statement_timeout; nothing was "
    "accepted",
    "25006": "it is a read-only standby now; nothing was accepted. With several hosts in the URL, "
    "target_session_attrs=read-write finds the new primary",
    "42501": "this user may not do that; grant it the rights on the schema",
    "40001": "others changed the same rows, again and again; nothing was accepted",
    "40P01": "others waited for the same rows in a circle, again and again; nothing was accepted",
}


def explain(error: ServerError, shown: str, *, opening: bool = False) -> HoldfastError:
    """What the server refused, and what to do about it. Fail closed: what we do not know is
    'unavailable', too."""
    cause = CAUSES.get(error.sqlstate)
    text = _one_line(str(error))
    if not opening and error.sqlstate.startswith(UNWRITABLE):
        return Unwritable(f"it can't be stored: {text} ({error.sqlstate})")
    if error.sqlstate == HELD:
        return StoreUnavailable(f"{shown} {text}; nothing was accepted")
    if opening and error.sqlstate[:2] in ("42", "3F", "28"):
        return ConfigurationError(f"{shown} can't be used: {text} ({error.sqlstate})")
    if cause is not None:
        return StoreUnavailable(f"{shown}: {cause} ({text})")
    return StoreUnavailable(f"{shown} refused: {text} ({error.sqlstate})")
