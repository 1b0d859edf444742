"""The contract of records over every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests import postgres_server
from tests.emulators import fresh_firestore
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.firestore.collections import RecordCollection
from holdfast.adapters.firestore.records import FirestoreRecords
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


class TestFirestoreRecords(RecordsContract):
    collections: tuple[RecordCollection, ...] = ()

    @asynccontextmanager
    async def make_records(self, clock: ManualClock) -> AsyncIterator[Records]:
        records = FirestoreRecords(fresh_firestore(), self.collections, test_clock=clock)
        try:
            yield records
        finally:
            await records.close()


class TestFirestoreRecordsInSeveralCollections(TestFirestoreRecords):
    collections = (RecordCollection("under_w", "w/"), RecordCollection("the_rest_of_w", "w"))
