"""Real servers with real troubles give the right finding, with why and fix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests import postgres_server
from tests.findings import gathered, look, troubles
from tests.integration.postgres.conftest import Schema
from tests.integration.postgres.pooler import Pooler

from holdfast import bootstrap
from holdfast.adapters.postgres import health
from holdfast.adapters.postgres.address import parse
from holdfast.model.clock import SystemClock
from holdfast.testing.contracts.store_topics.harness import a_claim, a_submit

SHARED = {"durability": "fail", "autovacuum": "warn"}
"""What is wrong with the tests' own server: it has fsync and autovacuum off."""


@pytest.fixture(scope="module")
def small() -> Iterator[postgres_server.PostgresServer]:
    """A durable server with few connections, where ann needs a password."""
    server = postgres_server.PostgresServer(
        "max_connections=12", "superuser_reserved_connections=2"
    )
    try:
        server.create()
        (server.data / "pg_hba.conf").write_text(
            "local all ann scram-sha-256\nlocal all all trust\n"
        )
        server.execute(
            "CREATE ROLE ann LOGIN PASSWORD 's3cret'; CREATE ROLE bob LOGIN; SELECT "
            "pg_reload_conf()"
        )
        yield server
    finally:
        server.end()


def of(server: postgres_server.PostgresServer, user: str, schema: str = "holdfast") -> str:
    return server.url(schema, timeout="2s").replace("postgres@", f"{user}@")


async def open_and_close(url: str) -> None:
    store = bootstrap.make_store(url, SystemClock())
    await store.open()
    await store.close()


def test_a_healthy_server_has_no_troubles(small: postgres_server.PostgresServer) -> None:
    asyncio.run(open_and_close(small.url("healthy")))
    findings = look(health.findings(small.url("healthy")))
    assert troubles(findings) == {}
    assert findings["server"].seen.startswith("PostgreSQL ")
    assert "arrive in" in findings["notifications"].seen


def test_a_schema_that_is_not_there_yet_is_a_warning_and_is_not_created(schema: Schema) -> None:
    assert troubles(look(health.findings(schema.url()))) == SHARED | {"schema": "warn"}
    assert schema.value(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema.name}'") == 0


def test_a_schema_of_a_newer_program_is_a_failure(schema: Schema) -> None:
    asyncio.run(open_and_close(schema.url()))
    with psycopg.connect(schema.server.url(), autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {schema.name}.migrations (number, name) VALUES (999, '0999_later.sql')"
        )
        connection.execute(
            f"UPDATE {schema.name}.meta SET value = '999' WHERE name = 'oldest_usable_schema'"
        )
    findings = look(health.findings(schema.url()))
    assert troubles(findings) == SHARED | {"usable": "fail"}
    assert "upgrade holdfast" in findings["usable"].seen


def test_a_wrong_password_is_a_failure_and_no_password_is_shown(
    small: postgres_server.PostgresServer,
) -> None:
    findings = look(health.findings(of(small, "ann:wrong-s3cret")))
    assert troubles(findings) == {"usable": "fail"}
    assert "password authentication failed" in findings["usable"].seen
    assert "s3cret" not in str(findings)


def test_a_server_that_is_down_is_a_failure(own_server: postgres_server.PostgresServer) -> None:
    own_server.kill()
    findings = look(health.findings(own_server.url(timeout="1s")))
    assert troubles(findings) == {"reachable": "fail"}
    assert "can't be reached" in findings["reachable"].seen


def test_a_user_who_may_not_create_the_schema_is_a_failure(
    small: postgres_server.PostgresServer,
) -> None:
    findings = look(health.findings(of(small, "bob", "elsewhere")))
    assert troubles(findings) == {"rights": "fail"}
    assert 'CREATE SCHEMA "elsewhere" AUTHORIZATION bob' in findings["rights"].fix


def test_a_user_who_may_not_use_the_tables_is_a_failure_until_the_fix_is_applied(
    small: postgres_server.PostgresServer,
) -> None:
    asyncio.run(open_and_close(small.url("theirs")))
    findings = look(health.findings(of(small, "bob", "theirs")))
    assert troubles(findings) == {"rights": "fail"}
    small.execute(findings["rights"].fix.removeprefix("as their owner: "))
    assert troubles(look(health.findings(of(small, "bob", "theirs")))) == {}


def test_a_database_that_is_read_only_is_a_failure(small: postgres_server.PostgresServer) -> None:
    small.execute(
        "CREATE ROLE reader SUPERUSER LOGIN; ALTER ROLE reader SET default_transaction_read_only = "
        "on"
    )
    findings = look(health.findings(of(small, "reader")))
    assert troubles(findings) == {"role": "fail"}


def test_a_short_statement_timeout_is_a_warning(small: postgres_server.PostgresServer) -> None:
    asyncio.run(open_and_close(small.url("hasty")))
    small.execute(
        "CREATE ROLE hasty SUPERUSER LOGIN; ALTER ROLE hasty SET statement_timeout = '500ms'"
    )
    assert troubles(look(health.findings(of(small, "hasty", "hasty")))) == {
        "statement_timeout": "warn"
    }


def test_too_few_connections_are_a_warning(small: postgres_server.PostgresServer) -> None:
    asyncio.run(open_and_close(small.url("few")))
    findings = look(health.findings(small.url("few", pool="9")))
    assert troubles(findings) == {"connections": "warn"}
    assert "room for 0 more" in findings["connections"].seen


def test_a_transaction_that_lasts_long_is_a_warning(
    small: postgres_server.PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(open_and_close(small.url("long")))
    monkeypatch.setattr(health, "LONG", 0.0)
    with psycopg.connect(small.url()) as forgotten:
        forgotten.execute("SELECT 1")
        pid = forgotten.info.backend_pid
        findings = look(health.findings(small.url("long")))
    assert troubles(findings) == {"long transactions": "warn"}
    assert f"pid {pid} of postgres, idle in transaction" in findings["long transactions"].seen


def test_a_pooler_in_transaction_mode_is_noticed(
    schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "NOTIFY_TIMEOUT", 0.2)

    async def story() -> None:
        await open_and_close(schema.url())
        async with Pooler(schema.server.folder / ".s.PGSQL.5432", tmp_path):
            findings = await gathered(health.findings(schema.url(host=str(tmp_path))))
            assert troubles(findings) == SHARED | {"notifications": "warn"}
            assert "goes through a pooler" in findings["pooler"].seen
            past = schema.url(host=str(tmp_path), listen=f"{schema.server.folder}:5432")
            assert troubles(await gathered(health.findings(past))) == SHARED
            off = await gathered(health.findings(schema.url(host=str(tmp_path), listen="off")))
            assert "listen=off" in off["notifications"].seen

    asyncio.run(story())


def test_a_run_that_was_left_behind_is_a_warning(schema: Schema) -> None:
    async def story() -> None:
        async with schema.store() as store:
            await store.apply([a_submit("r1"), a_claim()])
        schema.value(
            "UPDATE open_runs SET lease_until = extract(epoch FROM clock_timestamp()) - 3600 "
            "RETURNING 1"
        )

    asyncio.run(story())
    assert troubles(look(health.findings(schema.url()))) == SHARED | {"leases": "warn"}


def test_a_line_in_the_open_is_noticed() -> None:
    def is_open(url: str) -> bool:
        return any(health.is_remote(host) for host in health.hosts_of(parse(f"postgresql:{url}")))

    assert all(is_open(url) for url in ("//db.example.org/a", "//127.0.0.1,db/a"))
    assert not any(is_open(url) for url in ("//[::1]/a", "///a?host=/tmp", "///a", "//localhost/a"))
