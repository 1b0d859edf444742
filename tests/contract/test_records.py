"""The contract of records over every adapter."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.ports.records import Records
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.records import RecordsContract, records_of


class TestMemoryRecords(RecordsContract):
    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        return records_of(MemoryStore(clock))


class TestSqliteRecords(RecordsContract):
    @pytest.fixture(autouse=True)
    def _in_a_fresh_folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "holdfast.db"

    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        return records_of(SqliteStore(self.path, clock))


class TestPostgresRecords(RecordsContract):
    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        url = postgres_server.shared_server().url(postgres_server.fresh_schema())
        return records_of(PostgresStore(url, clock))


class TestRedisRecords(RecordsContract):
    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        url = shared_server().url(prefix=fresh_prefix())
        return records_of(RedisStore(url, test_clock=clock))
