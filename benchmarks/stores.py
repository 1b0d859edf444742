"""The servers that are measured: private ones from wheels, or those that the user names."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import hiredis
import psycopg

from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer, free_port

TIMEOUT = 20.0
DATABASE = "holdfast_benchmark"
REDIS_SETTINGS = {
    "appendonly": "yes",
    "maxmemory-policy": "noeviction",
    "auto-aof-rewrite-percentage": "0",
}
POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
}
"""Durable as shipped; room in the log, so that no measurement includes a checkpoint."""


class NotThere(RuntimeError):
    """A server can't be used; the text says why."""


@dataclass(frozen=True)
class Server:
    """Where a store is. `pid` is None when it is not ours to look at."""

    kind: str
    url: str
    pid: int | None = None

    def clean(self) -> None:
        """Delete everything in it."""
        clean = _clean_redis if self.kind == "redis" else _clean_postgres
        clean(self.url)

    def settle(self) -> None:
        """Update statistics and wait for the disk, after much was written."""
        if self.kind == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("ANALYZE")

    def describe(self) -> str:
        return _describe_redis(self.url) if self.kind == "redis" else _describe_postgres(self.url)

    @property
    def only_thread(self) -> int | None:
        """The process whose main thread serves everybody: Redis has one, PostgreSQL a process for
        each connection."""
        return self.pid if self.kind == "redis" else None

    def cpu(self) -> float | None:
        """Seconds of processor time that the server has used, with all its processes."""
        return None if self.pid is None else sum(cpu_seconds(pid) for pid in family(self.pid))


# --- starting -------------------------------------------------------------------------------------


@contextmanager
def servers(
    redis: str | None, postgres: str | None, appendfsync: str
) -> Iterator[dict[str, Server | NotThere]]:
    """Both servers for the length of a run. One that can't be had is a reason."""
    with ExitStack() as stack:
        yield {
            "redis": _try(
                lambda: _named_redis(redis) if redis else _private_redis(stack, appendfsync)
            ),
            "postgres": _try(
                lambda: _named_postgres(postgres) if postgres else _private_postgres(stack)
            ),
        }


def _try(make: Any) -> Server | NotThere:
    try:
        return make()
    except (OSError, RuntimeError, psycopg.Error) as error:
        return NotThere(str(error).strip().splitlines()[-1])


def _named_redis(url: str) -> Server:
    """Everything in it will be deleted, so there must be nothing in it."""
    if keys := redis_call(url, "DBSIZE"):
        raise NotThere(
            f"the Redis that was named holds {keys} keys; the benchmark empties it, so name an "
            "empty one"
        )
    return Server("redis", url)


def _named_postgres(url: str) -> Server:
    """Only a database of our own is touched."""
    _in_other_database(
        url,
        f"CREATE DATABASE {DATABASE}",
        unless=f"SELECT 1 FROM pg_database WHERE datname='{DATABASE}'",
    )
    return Server("postgres", _with_database(url, DATABASE))


def _private_redis(stack: ExitStack, appendfsync: str) -> Server:
    settings = {**REDIS_SETTINGS, "appendfsync": appendfsync}
    server = RedisServer(
        *(text for name, value in settings.items() for text in (f"--{name}", value))
    )
    stack.callback(server.end)
    server.start()
    return Server("redis", server.url(), server.pid)


def _private_postgres(stack: ExitStack) -> Server:
    """Reached as most are: over TCP."""
    port = free_port()
    settings = {
        **POSTGRES_SETTINGS,
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "shared_buffers": "128MB",
    }
    server = PostgresServer(*(f"{name}={value}" for name, value in settings.items()))
    stack.callback(server.end)
    server.create()
    return Server("postgres", f"postgresql://postgres@127.0.0.1:{port}/{DATABASE}", server.pid)


# --- talking --------------------------------------------------------------------------------------


def redis_call(url: str, *command: str) -> Any:
    """One command, one answer."""
    address = urlsplit(url)
    reader = hiredis.Reader()
    with socket.create_connection(
        (address.hostname or "127.0.0.1", address.port or 6379), TIMEOUT
    ) as connection:
        if address.password:
            _exchange(connection, reader, ("AUTH", address.password))
        return _exchange(connection, reader, command)


def _exchange(connection: socket.socket, reader: Any, command: tuple[str, ...]) -> Any:
    connection.sendall(hiredis.pack_command(command))
    while (reply := reader.gets()) is False:
        if not (data := connection.recv(65_536)):
            raise OSError("the server closed the connection")
        reader.feed(data)
    if isinstance(reply, Exception):
        raise OSError(str(reply))
    return reply


def _clean_redis(url: str) -> None:
    """The log begins anew too, so that one measurement's writes are not in the way of the next."""
    redis_call(url, "FLUSHALL")
    redis_call(url, "SCRIPT", "FLUSH")
    redis_call(url, "BGREWRITEAOF")
    deadline = time.monotonic() + TIMEOUT
    while _rewrites_log(url):
        if time.monotonic() > deadline:
            raise OSError("Redis does not finish rewriting its log")
        time.sleep(0.01)


def _rewrites_log(url: str) -> bool:
    state = redis_call(url, "INFO", "persistence")
    return b"aof_rewrite_in_progress:1" in state or b"aof_rewrite_scheduled:1" in state


def _clean_postgres(url: str) -> None:
    _in_other_database(
        url,
        f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)",
        f"CREATE DATABASE {DATABASE}",
        "CHECKPOINT",
    )


def _in_other_database(url: str, *statements: str, unless: str | None = None) -> None:
    with psycopg.connect(_with_database(url, "postgres"), autocommit=True) as connection:
        if unless and connection.execute(unless).fetchone():
            return
        for statement in statements:
            connection.execute(statement)


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _describe_redis(url: str) -> str:
    lines = dict(
        line.split(":", 1)
        for line in redis_call(url, "INFO", "server").decode().split("\r\n")
        if ":" in line
    )
    settings = [
        f"{name} {redis_call(url, 'CONFIG', 'GET', name)[1].decode()}"
        for name in ("appendonly", "appendfsync")
    ]
    return f"Redis {lines['redis_version']} with {', '.join(settings)}"


def _describe_postgres(url: str) -> str:
    with psycopg.connect(_with_database(url, "postgres")) as connection:

        def show(name: str) -> str:
            return connection.execute(f"SHOW {name}").fetchone()[0]  # type: ignore[index]

        names = ("fsync", "synchronous_commit", "full_page_writes")
        settings = ", ".join(f"{name} {show(name)}" for name in names)
        return f"PostgreSQL {show('server_version')} with {settings}"


# --- looking --------------------------------------------------------------------------------------


def family(pid: int) -> list[int]:
    """A process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            children.setdefault(int(_stat(stat)[1]), []).append(int(stat.parent.name))
        except (OSError, IndexError):
            pass
    members = [pid]
    for member in members:
        members += children.get(member, [])
    return members


def cpu_seconds(pid: int) -> float:
    """Of the process and of its children that have ended."""
    try:
        fields = _stat(Path(f"/proc/{pid}/stat"))
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Resident, in megabytes."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _stat(path: Path) -> list[str]:
    """What follows the name, which may contain anything: state, parent, …"""
    return path.read_text().rpartition(")")[2].split()
