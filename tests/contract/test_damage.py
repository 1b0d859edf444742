"""Damage is noticed when it is read, and never believed: on every store it costs what is damaged,
and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from holdfast import Conflict, Holdfast, Pipeline, RunFailed
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.records import StoreRecords
from holdfast.adapters.redis import codec
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.engine import cursors
from holdfast.engine.handle import RunHandle
from holdfast.errors import Damaged, Permanent
from holdfast.model.commands import Bury, Settle
from holdfast.model.ids import time_of
from holdfast.ports.store import RunFilter, Store
from holdfast.services.explanation import explain
from holdfast.testing.contracts.store_topics.harness import a_claim, a_submit, an_error

HASH_FIELDS = {"progress": "p", "error": "e", "input": "i", "result": "o"}
"""Of a run on Redis."""
BROKEN = '{"half'


class MemoryBackend:
    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()

    async def change_run(self, id: str, field: str, text: str) -> None:
        setattr(self.store._tables.runs[id].facts, field, text)

    async def change_letter(self, id: str, attributes: str) -> None:
        """What is here is never encoded."""
        pytest.skip("a dead letter in memory has no text that could be damaged")

    async def change_checkpoint(self, id: str, step: str, field: str, text: str) -> None:
        stored = self.store._tables.runs[id].checkpoints
        stored[step, ""] = replace(stored[step, ""], **{field: text})


class SqliteBackend:
    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder / "holdfast.db")

    async def change_run(self, id: str, field: str, text: str) -> None:
        self.store._reader.execute(f"UPDATE runs SET {field} = ? WHERE id = ?", (text, id))

    async def change_letter(self, id: str, attributes: str) -> None:
        sql = "UPDATE dead_letters SET attributes = ? WHERE id = ?"
        self.store._reader.execute(sql, (attributes, id))

    async def change_checkpoint(self, id: str, step: str, field: str, text: str) -> None:
        sql = f"UPDATE checkpoints SET {field} = ? WHERE run = ? AND step = ? AND key = ''"
        self.store._reader.execute(sql, (text, id, step))


class PostgresBackend:
    def __init__(self, folder: Path) -> None:
        self.schema = postgres_server.fresh_schema()
        self.store = PostgresStore(postgres_server.shared_server().url(self.schema))

    async def _execute(self, sql: str, *values: str) -> None:
        url = postgres_server.shared_server().url()
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(f"SET search_path TO {self.schema}")
            await connection.execute(sql, values)

    async def change_run(self, id: str, field: str, text: str) -> None:
        table = {"progress": "open_runs", "error": "open_runs", "result": "results"}
        sql = f"UPDATE {table.get(field, 'requests')} SET {field} = %s WHERE id = %s"
        await self._execute(sql, text, id)

    async def change_letter(self, id: str, attributes: str) -> None:
        await self._execute("UPDATE dead_letters SET attributes = %s WHERE id = %s", attributes, id)

    async def change_checkpoint(self, id: str, step: str, field: str, text: str) -> None:
        sql = f"UPDATE checkpoints SET {field} = %s WHERE run = %s AND step = %s"
        await self._execute(sql, text, id, step)


class RedisBackend:
    def __init__(self, folder: Path) -> None:
        self.store = RedisStore(shared_server().url(prefix=fresh_prefix()))

    async def change_run(self, id: str, field: str, text: str) -> None:
        if field in HASH_FIELDS:
            await self.store._ask([("HSET", f"run:{id}", HASH_FIELDS[field], text)])
            return
        [row] = await self.store._ask([("HMGET", f"run:{id}", *codec.WHOLE)])
        facts = codec.run(id, row)
        assert facts is not None
        static = codec.static(replace(facts, **{field: text}))
        await self.store._ask([("HSET", f"run:{id}", "s", static)])

    async def change_letter(self, id: str, attributes: str) -> None:
        [(stored,)] = await self.store._ask([("HMGET", f"letter:{id}", "m")])
        source, reason, _, *rest = codec.unpack(8, stored)
        packed = codec.packed(source, reason, attributes, *rest)
        await self.store._ask([("HSET", f"letter:{id}", "m", packed)])

    async def change_checkpoint(self, id: str, step: str, field: str, text: str) -> None:
        [saved] = await self.store.checkpoints(id, step)
        packed = codec.packed_checkpoint(replace(saved, **{field: text}))
        name = codec.checkpoint_field(step, "")
        await self.store._ask([("HSET", f"run:{id}", name, packed)])


@pytest.fixture(params=[MemoryBackend, SqliteBackend, PostgresBackend, RedisBackend])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


def run_story(backend: Any, story: Callable[[Store], Awaitable[None]]) -> None:
    async def whole() -> None:
        await backend.store.open()
        try:
            await story(backend.store)
        finally:
            await backend.store.close()

    asyncio.run(whole())


@pytest.mark.parametrize("field", ["progress", "error", "labels", "attributes"])
def test_a_broken_run_is_listed_as_broken_and_the_others_as_they_are(
    backend: Any, field: str
) -> None:
    async def story(store: Store) -> None:
        values = {"labels": {"a": "b"}, "attributes": {"c": "d"}}
        await store.apply([a_submit(id, **values) for id in ("r1", "r2", "r3")])
        await store.apply([a_claim(limit=3)])
        await store.apply(
            [Settle(id, 1, "failed", error=an_error(id)) for id in ("r1", "r2", "r3")]
        )
        await backend.change_run("r2", field, BROKEN)
        third, second, first = await store.runs(RunFilter())
        for run in (first, third):
            assert (run.damage, run.labels, run.attributes) == (None, {"a": "b"}, {"c": "d"})
            assert run.error is not None
            assert run.error.message == run.id
        assert (second.id, second.state) == ("r2", "failed")
        assert second.damage == f"can't be read: {field}"
        assert (await store.run("r2")) == second
        assert len(await store.over(["r1", "r2", "r3"])) == 3

    run_story(backend, story)


def test_a_run_with_unreadable_progress_is_claimed_with_the_others(backend: Any) -> None:
    async def story(store: Store) -> None:
        await store.apply([a_submit(id) for id in ("r1", "r2", "r3")])
        await backend.change_run("r2", "progress", BROKEN)
        [claimed] = await store.apply([a_claim(limit=3)])
        assert [run.run for run in claimed] == ["r1", "r2", "r3"]

    run_story(backend, story)


def test_a_damaged_dead_letter_hides_no_other(backend: Any) -> None:
    async def story(store: Store) -> None:
        letters = [Bury(f"m{n}", "bus", "why", b"body", {"a": "b"}) for n in range(3)]
        await store.apply(letters)
        await backend.change_letter("m1", BROKEN)
        by_id = {letter.id: letter for letter in await store.dead_letters()}
        assert sorted(by_id) == ["m0", "m1", "m2"]
        assert by_id["m0"].attributes == by_id["m2"].attributes == {"a": "b"}
        assert by_id["m1"].attributes == {"damaged": "its attributes can't be read any more"}
        assert (by_id["m1"].reason, by_id["m1"].body) == ("why", b"body")

    run_story(backend, story)


def test_a_damaged_cursor_begins_anew_and_holds_retention_back(backend: Any) -> None:
    async def story(store: Store) -> None:
        records = StoreRecords(store)
        await cursors.register(records, "sound", "messages", 7)
        await records.put("projections/damaged", BROKEN)
        damaged, sound = await cursors.registered(records)
        assert (sound.position, sound.state.failing) == (7, False)
        assert (damaged.position, damaged.state.failing) == (0, True)
        assert await cursors.slowest(records) == 0

    run_story(backend, story)


@pytest.mark.parametrize("field", ["id", "tenant", "created", "attempts", "input", "state"])
def test_what_is_of_another_type_is_damage(tmp_path: Path, field: str) -> None:
    """Of all stores only SQLite keeps anything in any column."""
    backend = SqliteBackend(tmp_path)

    async def story(store: Store) -> None:
        await store.apply([a_submit(id) for id in ("r1", "r2", "r3")])
        sql = f"UPDATE runs SET {field} = x'fffe' WHERE id = 'r2'"
        backend.store._reader.execute(sql)
        third, second, first = await store.runs(RunFilter())
        assert [run.damage for run in (first, third)] == [None, None]
        assert "its row can't be read" in (second.damage or "")
        explained = await explain(store, second)
        assert (explained.state, explained.cause) == ("broken", "damaged")
        assert "its row can't be read" in explained.sentence

    run_story(backend, story)


def test_a_damaged_run_is_left_alone_by_name(tmp_path: Path) -> None:
    """Whatever is asked of it, the answer says that it is damaged."""
    backend = SqliteBackend(tmp_path)
    pipeline = counting([])

    async def story(store: Store) -> None:
        app = Holdfast(store, [pipeline], worker=False, blobs=MemoryBlobs())
        run = await app.submit(pipeline, "a")
        backend.store._reader.execute("UPDATE runs SET attempts = 'many'")
        broken = await run.info()
        assert abs(broken.created - (time_of(run.id) or 0.0)) < 1.0
        for act in (app.operations.cancel, app.operations.pause, app.operations.resume):
            with pytest.raises(Conflict, match="damaged and can't be"):
                await act(run.id)
        with pytest.raises(Damaged, match="its row can't be read"):
            await app.service().runs.result(run.id)

    run_story(backend, story)


def counting(executed: list[str]) -> Pipeline[Any]:
    """first → second, which fails until `first` was executed or the list says so."""
    pipeline: Pipeline[Any] = Pipeline("p", input=str)

    @pipeline.step
    async def first(input: str) -> str:
        executed.append("first")
        return input.upper()

    @pipeline.step
    async def second(first: str) -> str:
        executed.append("second")
        if executed.count("second") == 1:
            raise Permanent("not yet")
        return f"{first}!"

    return pipeline


async def failed_once(app: Holdfast, pipeline: Pipeline[Any]) -> RunHandle:
    run = await app.submit(pipeline, "a")
    with pytest.raises(RunFailed, match="not yet"):
        await run.result(60)
    return RunHandle(app.runtime, run.id, pipeline)


def an_app(backend: Any, pipeline: Pipeline[Any]) -> Holdfast:
    return Holdfast(backend.store, [pipeline], blobs=MemoryBlobs())


@pytest.mark.parametrize(
    ("field", "text"), [("value", '"B"'), ("value", BROKEN), ("record", BROKEN)]
)
def test_a_damaged_checkpoint_costs_its_step(backend: Any, field: str, text: str) -> None:
    async def story() -> None:
        executed: list[str] = []
        pipeline = counting(executed)
        async with an_app(backend, pipeline) as app:
            run = await failed_once(app, pipeline)
            await backend.change_checkpoint(run.id, "first", field, text)
            await app.operations.resume(run.id, actor="me")
            assert await run.result(60) == "A!"
            assert executed == ["first", "second", "first", "second"]
            [(step, _, reason)] = await app.store.quarantined(run.id)
            assert step == "first"
            assert "checksum does not match" in reason or "can't be read" in reason

    asyncio.run(story())


def test_unreadable_progress_costs_nothing(backend: Any) -> None:
    async def story() -> None:
        executed: list[str] = []
        pipeline = counting(executed)
        async with an_app(backend, pipeline) as app:
            run = await failed_once(app, pipeline)
            await backend.change_run(run.id, "progress", BROKEN)
            await app.operations.resume(run.id, actor="me")
            assert await run.result(60) == "A!"
            assert executed == ["first", "second", "second"]

    asyncio.run(story())


def test_a_changed_input_is_not_believed(backend: Any) -> None:
    async def story() -> None:
        executed: list[str] = []
        pipeline = counting(executed)
        async with an_app(backend, pipeline) as app:
            run = await failed_once(app, pipeline)
            await backend.change_run(run.id, "input", '"b"')
            await app.operations.resume(run.id, actor="me")
            with pytest.raises(RunFailed, match=r"Damaged: the input of run .* changed or damaged"):
                await run.result(60)
            assert executed == ["first", "second"]

    asyncio.run(story())


def test_a_changed_result_is_not_believed(backend: Any) -> None:
    async def story() -> None:
        pipeline = counting(["second"])
        async with an_app(backend, pipeline) as app:
            run = await app.submit(pipeline, "a")
            assert await run.result(60) == "A!"
            await backend.change_run(run.id, "result", '"B!"')
            with pytest.raises(Damaged, match=r"the result of run .* checksum does not match"):
                await RunHandle(app.runtime, run.id, pipeline).result(60)

    asyncio.run(story())
