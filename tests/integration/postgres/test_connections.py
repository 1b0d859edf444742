"""Connections: few, made again by themselves, and no call is left without an answer."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from functools import partial

import psycopg
import pytest
from tests.integration.postgres.conftest import Schema, until, waiting

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.commands import Renew, Submitted
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import a_checkpoint, a_claim, a_submit


def connections(schema: Schema) -> int:
    return schema.value(
        f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{schema.name}'"
    )


def cut(schema: Schema) -> list[int]:
    """End every connection of stores, as a failover does. Answers their processes, which end a
    little later."""
    condition = f"FROM pg_stat_activity WHERE application_name = '{schema.name}'"
    return schema.value(
        f"SELECT coalesce(array_agg(pid) FILTER (WHERE pg_terminate_backend(pid)), '{{}}') "
        f"{condition}"
    )


def ended(schema: Schema, processes: list[int]) -> bool:
    return schema.value(
        f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ANY (ARRAY{processes}::integer[])"
    )


async def is_back(store: PostgresStore) -> bool:
    try:
        await store.run("any")
    except StoreUnavailable:
        return False
    return True


def test_a_store_never_has_more_connections_than_it_said(schema):
    async def story():
        async with schema.store(pool="3") as store:
            await asyncio.gather(*[store.apply([a_submit(f"r{number}")]) for number in range(100)])
            await asyncio.gather(
                *[asyncio.to_thread(asyncio.run, store.run(f"r{number}")) for number in range(20)]
            )
            assert connections(schema) <= 3 + 2
            assert await store.count(RunFilter()) == {"queued": 100}
        await until(lambda: connections(schema) == 0)

    asyncio.run(story())


def test_nothing_is_left_in_a_session(schema):
    """Behind a pooler, what was prepared is gone with the next transaction."""

    async def story():
        async with schema.store(pool="1") as store:
            for number in range(3):
                await store.apply([a_submit(f"r{number}"), a_claim()])
                await store.run("r0")
            pool = store._pool
            sql = "SELECT count(*) FROM pg_prepared_statements"
            assert await pool.call(sql.encode()) == b"0"
            settings = "SELECT count(*) FROM pg_settings WHERE source = 'session'"
            assert await pool.call(settings.encode()) == b"0"

    asyncio.run(story())


def test_notifications_for_somebody_else_are_not_kept(schema):
    """Behind a pooler, the server that somebody listened on serves others afterwards."""

    async def story():
        async with schema.store(pool="1") as store:
            pool = store._pool
            await pool.call(b"SELECT 1")
            [connection] = pool._all
            await connection.call(b"LISTEN other")
            await pool.call(b"SELECT pg_notify('other', 'x')::text")
            await pool.call(b"SELECT 1")
            assert connection._pq.notifies() is None

    asyncio.run(story())


def test_a_connection_that_was_cut_while_idle_is_replaced_unnoticed(schema):
    async def story():
        async with schema.store() as store:
            for round in range(5):
                await store.apply([a_submit(f"r{round}")])
                before = set(store._pool._all)
                await until(partial(ended, schema, cut(schema)))
                await until(
                    partial(before.isdisjoint, store._pool._all)
                )  # the farewell has arrived
                assert await store.run(f"r{round}") is not None

    asyncio.run(story())


def test_a_call_whose_connection_is_cut_says_that_its_outcome_is_unknown(schema):
    async def story():
        async with schema.store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            session = schema.session()
            session.execute("SELECT 1 FROM open_runs WHERE id = 'r1' FOR UPDATE")
            saving = asyncio.create_task(store.apply([a_checkpoint("r1", 1)]))
            await until(lambda: waiting(schema) > 0)
            cut(schema)
            with pytest.raises(StoreUnavailable):
                await saving
            session.close()
            assert await store.apply([a_checkpoint("r1", 1)]) == [None]

    asyncio.run(story())


def test_a_repeated_batch_after_a_lost_answer_changes_nothing(schema):
    """What a caller does who does not know: send it again."""

    async def story():
        async with schema.store() as store:
            batch = [a_submit("r1", key="k"), a_submit("r2")]
            first = await store.apply(batch)
            assert (
                await store.apply(batch)
                == first
                == [Submitted("r1", True, "queued"), Submitted("r2", True, "queued")]
            )
            assert [len(await store.history(run)) for run in ("r1", "r2")] == [1, 1]

    asyncio.run(story())


def test_a_call_that_takes_too_long_is_given_up(schema):
    async def story():
        async with schema.store(timeout="300ms", pool="1") as store:
            await store.run("warm")
            with psycopg.connect(schema.server.url()) as connection:
                connection.execute(f"LOCK TABLE {schema.name}.requests IN ACCESS EXCLUSIVE MODE")
                start = time.monotonic()
                with pytest.raises(StoreUnavailable, match=r"no answer within 0.3 s"):
                    await store.run("r1")
                assert time.monotonic() - start < 3
                connection.rollback()
            assert await store.run("r1") is None

    asyncio.run(story())


def test_waiting_for_a_connection_has_an_end_too(schema):
    async def story():
        async with schema.store(timeout="300ms", pool="1") as store:
            with psycopg.connect(schema.server.url()) as connection:
                connection.execute(f"LOCK TABLE {schema.name}.requests IN ACCESS EXCLUSIVE MODE")
                calls = [asyncio.create_task(store.run(f"r{number}")) for number in range(4)]
                results = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(outcome, StoreUnavailable) for outcome in results)
            assert await store.run("r1") is None

    asyncio.run(story())


def test_a_caller_who_gives_up_does_not_harm_the_next_one(schema):
    async def story():
        async with schema.store(pool="1") as store:
            for number in range(30):
                call = asyncio.create_task(store.apply([a_submit(f"r{number}")]))
                await asyncio.sleep(0.0002 * (number % 7))
                call.cancel()
                await asyncio.wait([call])
            assert await store.apply([a_submit("last")]) == [Submitted("last", True, "queued")]
            assert connections(schema) <= 3

    asyncio.run(story())


def test_a_batch_larger_than_the_sockets_buffers_arrives(schema):
    async def story():
        async with schema.store() as store:
            text = '"' + "☃" * 200_000 + '"'
            submits = [a_submit(f"r{number}", input=text) for number in range(8)]
            await asyncio.gather(*[store.apply(submits[start : start + 4]) for start in (0, 4)])
            [claimed] = await store.apply([a_claim(limit=9)])
            assert [run.input for run in claimed] == [text] * 8

    asyncio.run(story())


def test_a_closed_store_refuses_and_can_be_opened_again(schema):
    async def story():
        store = PostgresStore(schema.url())
        await store.open()
        await store.apply([a_submit("r1")])
        await store.close()
        for call in (store.apply([a_submit("r2")]), store.run("r1")):
            with pytest.raises(StoreUnavailable, match="is closed"):
                await call
        await store.open()
        assert await store.run("r2") is None
        await store.close()

    asyncio.run(story())


def test_closing_lets_what_is_under_way_end(schema):
    async def story():
        store = PostgresStore(schema.url())
        await store.open()
        await store.apply([a_submit("r1"), a_claim()])
        session = schema.session()
        session.execute("SELECT 1 FROM open_runs WHERE id = 'r1' FOR UPDATE")
        saving = asyncio.create_task(store.apply([a_checkpoint("r1", 1)]))
        await until(lambda: waiting(schema) > 0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        session.close()
        await closing
        assert await saving == [None]

    asyncio.run(story())


def test_it_can_be_closed_from_another_loop_than_it_was_opened_in(schema):
    store = PostgresStore(schema.url())
    asyncio.run(store.open())

    async def story():
        assert await store.apply([a_submit("r1")]) == [Submitted("r1", True, "queued")]
        await store.close()

    asyncio.run(story())


def test_leases_are_renewed_while_the_loop_that_opened_the_store_is_blocked(schema):
    async def story():
        async with schema.store() as store:
            await store.apply([a_submit("r1"), a_claim()])
            answer: list[object] = []

            def keep() -> None:
                answer.append(asyncio.run(store.apply([Renew([("r1", 1)], 30.0)])))

            keeper = threading.Thread(target=keep)
            keeper.start()
            keeper.join(10)  # blocks this loop, as a step of a user may
            assert answer == [[[]]]

    asyncio.run(story())


# --- the server goes away ---


@pytest.mark.slow
def test_a_server_that_was_restarted_is_used_again_by_itself(own_server):
    schema = Schema(own_server, "holdfast")

    async def story():
        async with schema.store(timeout="2s") as store:
            await store.apply([a_submit("r1")])
            version = await store.wait(0, 0.0)
            await asyncio.to_thread(own_server.kill)
            for call in (store.apply([a_submit("r2")]), store.run("r1")):
                with pytest.raises(StoreUnavailable):
                    await call
            await asyncio.to_thread(own_server.start)
            await until(lambda: is_back(store))
            assert await store.run("r1") is not None
            assert await store.run("r2") is None
            assert await store.apply([a_submit("r2")]) == [Submitted("r2", True, "queued")]
            await until(lambda: store._listener.is_listening)  # who listens is back as well
            async with schema.store() as other:
                version = await store.wait(0, 0.0)
                await other.apply([a_submit("r3")])
                assert await store.wait(version, 5.0) > version

    asyncio.run(story())


# --- secrets ---


@pytest.mark.slow
def test_a_password_never_appears(own_server, caplog):
    own_server.execute(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE ann LOGIN SUPERUSER PASSWORD "
        "'s3cret'"
    )
    rules = own_server.data / "pg_hba.conf"
    rules.write_text("local all ann scram-sha-256\nlocal all all trust\n")
    own_server.execute("SELECT pg_reload_conf()")
    caplog.set_level(logging.DEBUG)
    good = own_server.url("holdfast", timeout="1s").replace("postgres@", "ann:s3cret@")

    async def story():
        with pytest.raises(ConfigurationError, match="password authentication failed"):
            await PostgresStore(good.replace("s3cret", "s3cret-wrong")).open()
        store = PostgresStore(good)
        await store.open()
        await asyncio.to_thread(own_server.kill)
        with pytest.raises(StoreUnavailable) as caught:
            await store.apply([a_submit("r1")])
        assert "s3cret" not in repr(caught.value) + repr(store.address) + str(vars(store))
        await store.close()

    asyncio.run(story())
    assert "s3cret" not in caplog.text
