"""Opening: migrations run once and under a lock, and what is unsafe is refused with a reason."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from tests.integration.postgres.conftest import Schema

from holdfast.adapters.migrations import Migration
from holdfast.adapters.postgres import database
from holdfast.adapters.postgres.database import _refuse_unsafe, look_alike
from holdfast.adapters.postgres.health import findings
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.ports.health import Finding
from holdfast.ports.store import RunFilter
from holdfast.services.doctor import named
from holdfast.testing.contracts.store_topics.harness import a_submit


async def opened(url: str) -> None:
    store = PostgresStore(url)
    await store.open()
    await store.close()


def test_many_may_open_a_new_store_at_once(schema: Schema) -> None:
    async def story() -> None:
        await asyncio.gather(*[opened(schema.url()) for _ in range(8)])

    asyncio.run(story())
    numbers = [migration.number for migration in database.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert schema.value("SELECT array_agg(number ORDER BY number) FROM migrations") == numbers


def test_a_schema_with_an_odd_name_works(schema: Schema) -> None:
    async def story() -> None:
        async with odd.store() as store:
            await store.apply([a_submit("r1")])
            assert await store.run("r1") is not None

    odd = Schema(schema.server, 'odd "name" ' + schema.name)
    asyncio.run(story())


def test_two_schemas_are_two_stores(schema: Schema) -> None:
    async def story() -> None:
        other = Schema(schema.server, f"{schema.name}_other")
        async with schema.store() as first, other.store() as second:
            await first.apply([a_submit("r1")])
            assert await second.run("r1") is None

    asyncio.run(story())


def test_tables_of_another_program_are_left_alone(schema: Schema) -> None:
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(
            f'CREATE SCHEMA "{schema.name}"; CREATE TABLE "{schema.name}".runs (theirs int)'
        )
    with pytest.raises(
        ConfigurationError, match="holds tables of another program; nothing was changed"
    ):
        asyncio.run(opened(schema.url()))
    assert schema.value("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == 1


def test_a_newer_schema_is_refused_by_older_code_unless_it_says_otherwise(schema: Schema) -> None:
    asyncio.run(opened(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {schema.name}.migrations (number, name) VALUES (999, '0999_later.sql')"
        )
        connection.execute(
            f"UPDATE {schema.name}.meta SET value = '999' WHERE name = 'oldest_usable_schema'"
        )
    with pytest.raises(
        ConfigurationError, match=r"newer holdfast \(schema 999, here \d+\): upgrade holdfast"
    ):
        asyncio.run(opened(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(
            f"UPDATE {schema.name}.meta SET value = '1' WHERE name = 'oldest_usable_schema'"
        )
    asyncio.run(opened(schema.url()))


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM meta WHERE name = 'format'",
        "UPDATE meta SET value = '0' WHERE name = 'format'",
        "DROP TABLE meta CASCADE",
        "INSERT INTO migrations SELECT n, 'old' FROM generate_series(2, 11) n; DELETE FROM meta",
    ],
)
def test_a_store_of_a_pre_release_is_refused(schema: Schema, change: str) -> None:
    asyncio.run(opened(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema.name}; {change}")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="was written by a pre-release of holdfast"):
        asyncio.run(opened(schema.url()))


def test_a_migration_that_fails_leaves_nothing_behind(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(999, "0999_broken.sql", "CREATE TABLE half (x int); SELECT 1/0")
    all_migrations = database.migrations()
    monkeypatch.setattr(database, "migrations", lambda: [*all_migrations, broken])
    with pytest.raises(StoreUnavailable, match="division by zero"):
        asyncio.run(opened(schema.url()))
    assert schema.value(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema.name}'") == 0
    monkeypatch.undo()
    asyncio.run(opened(schema.url()))


def test_old_workers_go_on_while_a_migration_runs_and_after_it(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N and N−1: a migration only adds, and waits for nobody's work."""

    sql = "ALTER TABLE requests ADD COLUMN later text; ALTER TABLE open_runs ADD COLUMN later text"
    later = Migration(999, "0999_later.sql", sql)

    async def story() -> None:
        async with schema.store() as old:
            await old.apply([a_submit("r1")])
            monkeypatch.setattr(database, "migrations", lambda: [*all_migrations, later])
            await opened(schema.url())
            await old.apply([a_submit("r2")])
            assert [run.id for run in await old.runs(RunFilter())] == ["r2", "r1"]

    all_migrations = database.migrations()
    asyncio.run(story())
    assert schema.value("SELECT max(number) FROM migrations") == 999


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("server_version_num", "120011", "needs 13 or newer"),
        ("server_encoding", "LATIN1", "ENCODING 'UTF8'"),
        ("transaction_isolation", "serializable", "default_transaction_isolation"),
    ],
)
def test_what_is_unsafe_is_refused(setting: str, value: str, reason: str) -> None:
    good = {
        "server_version_num": "130000",
        "server_encoding": "UTF8",
        "transaction_isolation": "read committed",
    }
    _refuse_unsafe(good, "postgresql://db")
    with pytest.raises(ConfigurationError, match=reason):
        _refuse_unsafe({**good, setting: value}, "postgresql://db")


POSTGRESQL = (
    "PostgreSQL 18.1 on x86_64-pc-linux-gnu, compiled by gcc (Debian 14.2.0) 14.2.0, 64-bit",
    "PostgreSQL 15.4 (EnterpriseDB Advanced Server 15.4.0) on x86_64-pc-linux-gnu",
    "PostgreSQL 13.23 (Debian 13.23-1.pgdg12+1) on x86_64-pc-linux-gnu",
)
OTHERS = {
    "CockroachDB": "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)",
    "YugabyteDB": "PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang",
    "Amazon Redshift": "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.12103",
    "Greenplum": "PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0a7a3566) on x86_64",
    "RisingWave": "PostgreSQL 13.14.0-RisingWave-2.0.0 (c1e5bf1)",
    "Umbra": "Umbra (build 7)",
}


def test_databases_that_only_look_like_postgresql_are_known_by_name() -> None:
    assert [look_alike(version) for version in POSTGRESQL] == [None, None, None]
    assert {name: look_alike(version) for name, version in OTHERS.items()} == {
        name: name for name in OTHERS
    }


def disguised(schema: Schema, version: str) -> str:
    """The URL of a database whose `version()` says something else."""
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema.name}_disguise")
        connection.execute(
            f"CREATE FUNCTION {schema.name}_disguise.version() RETURNS text LANGUAGE sql "
            f"AS $$ SELECT '{version}' $$"
        )
    return schema.url(options=f"-c search_path={schema.name}_disguise,pg_catalog")


def test_a_database_that_only_looks_like_postgresql_is_refused_by_name(schema: Schema) -> None:
    url = disguised(schema, OTHERS["CockroachDB"])
    with pytest.raises(ConfigurationError, match="is CockroachDB, which only looks like"):
        asyncio.run(opened(url))
    assert schema.value(f"SELECT to_regnamespace('{schema.name}')") is None


def test_doctor_names_a_database_that_only_looks_like_postgresql(schema: Schema) -> None:
    async def story() -> list[Finding]:
        return [finding async for finding in named("store", findings(url))]

    url = disguised(schema, OTHERS["YugabyteDB"])
    *_, last = asyncio.run(story())
    assert (last.status, "is YugabyteDB" in last.seen) == ("fail", True)


def test_a_database_that_does_not_exist_is_a_setting_to_fix(schema: Schema) -> None:
    url = schema.url().replace("/postgres?", "/nowhere?")
    with pytest.raises(ConfigurationError, match='database "nowhere" does not exist'):
        asyncio.run(opened(url))


def test_a_server_that_is_not_there_is_unavailable(schema: Schema) -> None:
    url = f"postgresql://ann:s3cret@127.0.0.1:1/app?schema={schema.name}&timeout=2s"
    with pytest.raises(
        StoreUnavailable, match=r"postgresql://ann@127.0.0.1:1/app can't be reached"
    ) as caught:
        asyncio.run(opened(url))
    assert "s3cret" not in str(caught.value)


def test_commits_wait_for_the_disk_also_where_the_default_is_not_to(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store(options="-c synchronous_commit=off") as store:
            await store.apply([a_submit("r1")])

    asyncio.run(opened(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema.name}; CREATE TABLE seen (setting text)")
        connection.execute(
            "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; "
            "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON requests DEFERRABLE INITIALLY "
            "DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION look()"
        )
        connection.execute(f"ALTER FUNCTION look() SET search_path TO {schema.name}")
    asyncio.run(story())
    assert schema.value("SELECT setting FROM seen") == "on"
