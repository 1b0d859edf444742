"""The contract of movers over every adapter."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from tests import postgres_server
from tests.redis_server import RedisServer, fresh_prefix, shared_server, shared_valkey

from holdfast.adapters.memory.mover import MemoryMover
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.mover import PostgresMover
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.mover import RedisMover
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.mover import SqliteMover
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.ports.mover import Mover
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.mover import MoverContract
from holdfast.testing.contracts.mover_topics.harness import StoreLocation


class InMemory:
    def __init__(self) -> None:
        self._store: MemoryStore | None = None

    def store(self, clock: ManualClock) -> MemoryStore:
        self._store = self._store or MemoryStore(clock)
        return self._store

    def mover(self, clock: ManualClock) -> Mover:
        return MemoryMover(self.store(clock))


class TestMemoryMover(MoverContract):
    def make_location(self) -> StoreLocation:
        return InMemory()


class InFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def store(self, clock: ManualClock) -> Store:
        return SqliteStore(self._path, clock)

    def mover(self, clock: ManualClock) -> Mover:
        return SqliteMover(self._path, clock)


class TestSqliteMover(MoverContract):
    @pytest.fixture(autouse=True)
    def _in_a_fresh_folder(self, tmp_path: Path) -> None:
        self._files = (tmp_path / f"{number}.db" for number in count(1))

    def make_location(self) -> StoreLocation:
        return InFile(next(self._files))


class InSchema:
    def __init__(self) -> None:
        self._url = postgres_server.shared_server().url(postgres_server.fresh_schema())

    def store(self, clock: ManualClock) -> Store:
        return PostgresStore(self._url, clock)

    def mover(self, clock: ManualClock) -> Mover:
        return PostgresMover(self._url, clock)


class TestPostgresMover(MoverContract):
    def make_location(self) -> StoreLocation:
        return InSchema()


class UnderPrefix:
    def __init__(self, server: RedisServer) -> None:
        self._url = server.url(prefix=fresh_prefix())

    def store(self, clock: ManualClock) -> Store:
        return RedisStore(self._url, test_clock=clock)

    def mover(self, clock: ManualClock) -> Mover:
        return RedisMover(self._url, test_clock=clock)


class TestRedisMover(MoverContract):
    def make_location(self) -> StoreLocation:
        return UnderPrefix(shared_server())


class TestValkeyMover(MoverContract):
    def make_location(self) -> StoreLocation:
        return UnderPrefix(shared_valkey())
