"""The four stores, each fresh and with a clock that is moved by hand."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from tests import postgres_server, redis_server

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock

STORES = ("memory", "sqlite", "postgres", "redis")
_numbers = count()


def make_store(kind: str, clock: ManualClock, folder: Path) -> Store:
    if kind == "memory":
        return MemoryStore(clock)
    if kind == "sqlite":
        return SqliteStore(folder / f"holdfast-{next(_numbers)}.db", clock)
    if kind == "postgres":
        return PostgresStore(url_of(kind, folder), clock)
    return RedisStore(url_of(kind, folder), test_clock=clock)


def url_of(kind: str, folder: Path, **more: Any) -> str:
    """A store of its own, for processes of their own."""
    if kind == "sqlite":
        return f"sqlite:///{folder / f'holdfast-{next(_numbers)}.db'}"
    if kind == "postgres":
        return postgres_server.shared_server().url(postgres_server.fresh_schema())
    return redis_server.shared_server().url(prefix=redis_server.fresh_prefix(), **more)
