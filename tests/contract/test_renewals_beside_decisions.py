"""A lease that is renewed while somebody decides about its run is still a lease: by real clocks,
which go on between two reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model.commands import Renew, Settle
from holdfast.ports.store import Store
from holdfast.testing.contracts.store_topics.harness import a_claim, a_submit, an_error

RUNS = 150


def a_store(kind: str, folder: Path) -> Store:
    match kind:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return SqliteStore(folder / "holdfast.db")
        case "postgres":
            server = postgres_server.shared_server()
            return PostgresStore(server.url(postgres_server.fresh_schema()))
        case _:
            return RedisStore(shared_server().url(prefix=fresh_prefix()))


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "redis"])
def test_a_failure_is_written_while_its_lease_is_renewed(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = a_store(kind, tmp_path)
        await store.open()
        try:
            runs = [f"r{number}" for number in range(RUNS)]
            await store.apply([a_submit(run) for run in runs])
            [claimed] = await store.apply([a_claim(limit=RUNS)])
            leases = [(run.run, run.epoch) for run in claimed]
            for run, epoch in leases:
                renewals = [store.apply([Renew(held=leases, ttl=30.0)]) for _ in range(2)]
                settle = Settle(run, epoch, "failed", error=an_error("no"))
                [reply], *_ = await asyncio.gather(store.apply([settle]), *renewals)
                assert reply is None, f"{run}: {reply}"
        finally:
            await store.close()

    asyncio.run(story())
