"""The PostgreSQL server of the tests: a skip on a laptop that has none, a failure in CI."""

from __future__ import annotations

import asyncio
import os
import socket
from functools import cache
from itertools import count

import psycopg

from holdfast.adapters.postgres import database
from holdfast.adapters.postgres.address import parse
from holdfast.testing.servers import postgres
from holdfast.testing.servers.postgres import unprivileged_user as unprivileged_user
from tests.endings import at_the_end
from tests.missing import or_skip

QUICK = ("fsync=off", "full_page_writes=off", "autovacuum=off")
"""For tests that do not care about crashes of the server."""
_numbers = count(1)


class PostgresServer(postgres.PostgresServer):
    def program(self, name: str) -> str:
        return executable(name)


def executable(name: str) -> str:
    return or_skip(lambda: postgres.executable(name))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@cache
def shared_server() -> PostgresServer:
    """One for all tests of this process; each takes a schema of its own."""
    server = PostgresServer(*QUICK)
    at_the_end(server.end)
    server.create()
    return server


def fresh_schema() -> str:
    return f"t{os.getpid()}_{next(_numbers)}"


TABLES = (
    "requests, labels, tenants, records, open_runs, results, checkpoints, quarantine, "
    "events, logs, lanes, locks, dead_letters, audit"
)


@cache
def _one_schema() -> str:
    schema = fresh_schema()
    asyncio.run(database.prepare(parse(shared_server().url(schema))))
    return schema


def emptied_schema() -> str:
    """The same schema each time, without anything in it: for hundreds of stories in one test."""
    url = shared_server().url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {_one_schema()}; TRUNCATE {TABLES}")
        connection.execute("DELETE FROM meta WHERE name = 'mark'")
    return _one_schema()
