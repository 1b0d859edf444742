"""The store's contract over every adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import postgres_server
from tests.redis_server import RedisServer, fresh_prefix, shared_server, shared_valkey

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store import StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self, clock: ManualClock) -> Store:
        return MemoryStore(clock)


class OnDisk(StoreContract):
    @pytest.fixture(autouse=True)
    def _in_a_fresh_folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "holdfast.db"


class TestSqliteStore(OnDisk):
    def make_store(self, clock: ManualClock) -> Store:
        return SqliteStore(self.path, clock)


class TestSqliteStoreWithoutThreads(OnDisk):
    def make_store(self, clock: ManualClock) -> Store:
        return SqliteStore(self.path, clock, threads=False)

    def test_it_reaches_another_store_object(self) -> None:
        """Not promised: without threads it lives in a simulation, which notifies by itself."""

    def test_holders_are_notified_by_another_store_object(self) -> None:
        """Not promised either."""


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _in_a_schema_of_its_own(self) -> None:
        self.url = postgres_server.shared_server().url(postgres_server.fresh_schema())

    def make_store(self, clock: ManualClock) -> Store:
        return PostgresStore(self.url, clock)


class TestRedisStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _with_keys_of_its_own(self) -> None:
        self.url = self.server().url(prefix=fresh_prefix())

    def server(self) -> RedisServer:
        return shared_server()

    def make_store(self, clock: ManualClock) -> Store:
        return RedisStore(self.url, test_clock=clock)


class TestValkeyStore(TestRedisStore):
    def server(self) -> RedisServer:
        return shared_valkey()
