"""The store of a URL, and what moves one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.bootstrap.urls import choose, not_installed, sqlite_path
from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock
from holdfast.ports.mover import Mover
from holdfast.ports.store import Store


def make_store(url: str, clock: Clock) -> Store:
    """`memory:`, `sqlite:///file`, `postgresql://host/database`, `redis://host` or `rediss://host`."""
    known: dict[str, Callable[[], Store]] = {
        "memory": lambda: _memory_store(clock),
        "sqlite": lambda: _sqlite(url, clock),
        "postgresql": lambda: _postgres_store(url, clock),
        "postgres": lambda: _postgres_store(url, clock),
        "redis": lambda: _redis_store(url),
        "rediss": lambda: _redis_store(url),
    }
    return choose(url, "store", known)


def make_mover(url: str, clock: Clock) -> Mover:
    """What reads and fills the store of a URL, past everybody else."""
    if url.startswith("memory:"):
        raise ConfigurationError(
            "memory: lives in one process and ends with it: there is nothing to move"
        )
    known: dict[str, Callable[[], Mover]] = {
        "sqlite": lambda: _sqlite_mover(url, clock),
        "postgresql": lambda: _postgres_mover(url, clock),
        "postgres": lambda: _postgres_mover(url, clock),
        "redis": lambda: _redis_mover(url),
        "rediss": lambda: _redis_mover(url),
    }
    return choose(url, "store", known)


def missing_file(store_url: str) -> Path | None:
    """The file of a store that nobody has created yet: for those who only want to look."""
    if not store_url.startswith("sqlite:"):
        return None
    path = Path(sqlite_path(store_url))
    return None if path.exists() else path


def _memory_store(clock: Clock) -> Store:
    from holdfast.adapters.memory.store import MemoryStore

    return MemoryStore(clock)


def _sqlite(url: str, clock: Clock) -> Store:
    from holdfast.adapters.sqlite.store import SqliteStore

    return SqliteStore(sqlite_path(url), clock)


def _postgres_store(url: str, clock: Clock) -> Store:
    try:
        from holdfast.adapters.postgres.store import PostgresStore
    except ImportError as error:
        raise not_installed(url, "postgres") from error
    return PostgresStore(url, clock)


def _redis_store(url: str) -> Store:
    """Its time is the server's."""
    try:
        from holdfast.adapters.redis.store import RedisStore
    except ImportError as error:
        raise not_installed(url, "redis") from error
    return RedisStore(url)


def _sqlite_mover(url: str, clock: Clock) -> Mover:
    from holdfast.adapters.sqlite.mover import SqliteMover

    return SqliteMover(sqlite_path(url), clock)


def _postgres_mover(url: str, clock: Clock) -> Mover:
    try:
        from holdfast.adapters.postgres.mover import PostgresMover
    except ImportError as error:
        raise not_installed(url, "postgres") from error
    return PostgresMover(url, clock)


def _redis_mover(url: str) -> Mover:
    try:
        from holdfast.adapters.redis.mover import RedisMover
    except ImportError as error:
        raise not_installed(url, "redis") from error
    return RedisMover(url)
