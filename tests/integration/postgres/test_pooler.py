"""Behind a pooler in transaction mode: nothing may rely on a session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.postgres.conftest import Schema, until
from tests.integration.postgres.pgbouncer import PgBouncer
from tests.integration.postgres.pooler import Pooler

from holdfast import Holdfast, Pipeline, WorkerOptions
from holdfast.adapters.postgres import listener
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.testing.invariants import check_store

five = Pipeline("five")
for number in range(5):
    five.step(name=f"s{number}")(lambda input: input)


@pytest.mark.parametrize("kind", ["PgBouncer", "a strict one"])
def test_two_apps_work_behind_a_pooler_with_two_connections(
    kind: str,
    schema: Schema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listener, "PROBE", 0.2)

    async def story() -> None:
        strict = Pooler(schema.server.folder / ".s.PGSQL.5432", tmp_path)
        async with PgBouncer(schema.server) if kind == "PgBouncer" else strict as pooler:
            url = schema.url(host=str(pooler.folder))
            options = WorkerOptions(concurrency=8)
            async with (
                Holdfast(url, [five], worker=options) as first,
                Holdfast(url, [five], worker=options) as other,
            ):
                handles = await asyncio.gather(
                    *[first.submit(five, number, key=f"k{number}") for number in range(60)]
                )
                handles += await other.submit_many(five, range(60, 120))
                assert await asyncio.gather(*[handle.result(60) for handle in handles]) == list(
                    range(120)
                )
                async with first.lock("shared") as lock:
                    assert lock.epoch == 1
                assert await check_store(first.store) == []
                # A quick machine has done all this before a probe can have been missed.
                await until(lambda: "delivers no notifications" in caplog.text)

    asyncio.run(story())


def test_wake_ups_come_past_the_pooler_when_the_url_leads_there(
    schema: Schema, tmp_path: Path
) -> None:
    async def story() -> None:
        async with Pooler(schema.server.folder / ".s.PGSQL.5432", tmp_path):
            store = PostgresStore(
                schema.url(host=str(tmp_path), listen=f"{schema.server.folder}:5432")
            )
            await store.open()
            try:
                await until(lambda: store._listener.is_listening)
            finally:
                await store.close()

    asyncio.run(story())
