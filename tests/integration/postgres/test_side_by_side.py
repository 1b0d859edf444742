"""Transactions side by side: races made certain by a session that stays in the middle of its
own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from tests.integration.postgres.conftest import Schema, Session, until, waiting

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.errors import StoreUnavailable
from holdfast.model.commands import (
    STALE,
    Acquire,
    Acquired,
    Cancel,
    Claim,
    DefineLane,
    Held,
    Prune,
    Refused,
    Renew,
    Resume,
    SaveProgress,
    Settle,
    Submitted,
    Sweep,
)
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import (
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
)


@pytest.fixture
def sessions(schema: Schema) -> Iterator[list[Session]]:
    """Sessions opened in a test; whatever they left open is rolled back."""
    opened: list[Session] = []
    yield opened
    for session in opened:
        session.close()


def begin(schema: Schema, sessions: list[Session]) -> Session:
    sessions.append(schema.session())
    return sessions[-1]


async def apply_one(store: PostgresStore, command: object) -> object:
    return (await store.apply([command]))[0]  # type: ignore[list-item]


async def started(store: PostgresStore, *runs: str) -> None:
    await store.apply([*[a_submit(run) for run in runs], a_claim(limit=len(runs))])


async def in_the_way(schema: Schema, task: asyncio.Task[object]) -> None:
    """Wait until the task's statement visibly waits for somebody."""
    await until(lambda: task.done() or waiting(schema) > 0)
    assert not task.done()


# --- the fence ---


def test_a_cancel_waits_for_a_checkpoint_that_was_first_and_refuses_all_later_ones(
    schema, sessions
):
    async def story():
        async with schema.store() as store:
            await started(store, "r1")
            worker = begin(schema, sessions)
            assert worker.apply(a_checkpoint("r1", 1, "a")) == [None]
            cancel = asyncio.create_task(apply_one(store, Cancel("r1", "ann")))
            await in_the_way(schema, cancel)
            worker.commit()
            assert await cancel is None
            assert worker.apply(a_checkpoint("r1", 1, "b")) == [STALE]
            assert [checkpoint.step for checkpoint in await store.checkpoints("r1")] == ["a"]

    asyncio.run(story())


def test_a_checkpoint_waits_for_a_cancel_that_was_first_and_is_refused(schema, sessions):
    async def story():
        async with schema.store() as store:
            await started(store, "r1", "r2")
            operator = begin(schema, sessions)
            assert operator.apply(Cancel("r1", "ann")) == [None]
            saving = asyncio.create_task(
                store.apply([a_checkpoint("r1", 1), a_checkpoint("r2", 1)])
            )
            await in_the_way(schema, saving)
            operator.commit()
            assert await saving == [STALE, None]
            assert [event.type for event in await store.history("r1")][-1] == "run.cancelled"

    asyncio.run(story())


def test_numbers_of_events_have_no_gap_when_two_transactions_write_to_one_run(schema, sessions):
    async def story():
        async with schema.store() as store:
            await started(store, "r1")
            other = begin(schema, sessions)
            other.apply(a_checkpoint("r1", 1, "a"))
            saving = asyncio.create_task(apply_one(store, a_checkpoint("r1", 1, "b")))
            await in_the_way(schema, saving)
            other.commit()
            assert await saving is None
            assert await apply_one(store, a_checkpoint("r1", 1, "c")) is None
            assert [event.seq for event in await store.history("r1")] == [1, 2, 3, 4, 5]

    asyncio.run(story())


LATE = {
    "a lone checkpoint": [a_checkpoint("r1", 1)],
    "a lone success": [Settle("r1", 1, "succeeded", result="1", last=a_checkpoint("r1", 1))],
    "a group": [a_checkpoint("r1", 1, "a"), a_checkpoint("r1", 1, "b")],
}


@pytest.mark.parametrize("batch", LATE.values(), ids=LATE.keys())
def test_a_lease_that_ends_while_its_row_is_waited_for_has_ended(schema, sessions, batch):
    async def story():
        async with schema.store() as store:
            await store.apply([a_submit("r1"), a_claim(ttl=0.3)])
            other = begin(schema, sessions)
            other.execute("SELECT FROM open_runs FOR UPDATE")
            late = asyncio.create_task(store.apply(batch))
            await in_the_way(schema, late)
            await until(
                lambda: schema.value(
                    "SELECT lease_until <= extract(epoch FROM clock_timestamp()) FROM open_runs"
                )
            )
            other.commit()
            assert await late == [STALE] * len(batch)
            assert await store.checkpoints("r1") == []

    asyncio.run(story())


# --- taking turns ---


def test_batches_that_name_the_same_runs_in_opposite_order_do_not_deadlock(schema, sessions):
    runs = [f"r{number}" for number in range(20)]

    def writes(order):
        return [
            command
            for run in order
            for command in (SaveProgress(run, 1, "{}"), a_checkpoint(run, 1, "s"))
        ]

    async def story():
        async with schema.store() as store:
            await started(store, *runs)
            first = [store.apply(writes(runs)) for _ in range(8)]
            second = [
                store.apply([*writes(reversed(runs)), Renew([(run, 1) for run in runs], 30.0)])
                for _ in range(8)
            ]
            await asyncio.gather(
                *[batch for pair in zip(first, second, strict=True) for batch in pair]
            )

    before = deadlocks(schema)
    asyncio.run(story())
    assert deadlocks(schema) == before


def test_submits_of_the_same_keys_in_opposite_order_do_not_deadlock(schema, sessions):
    async def story():
        async with schema.store() as store:
            for round in range(10):
                keys = [f"k{round}-{number}" for number in range(20)]
                there = [a_submit(f"a{key}", key=key) for key in keys]
                back = [a_submit(f"b{key}", key=key) for key in reversed(keys)]
                replies = await asyncio.gather(store.apply(there), store.apply(back))
                assert sum(reply.created for batch in replies for reply in batch) == 20

    before = deadlocks(schema)
    asyncio.run(story())
    assert deadlocks(schema) == before


def test_unique_slots_and_locks_taken_in_opposite_order_do_not_deadlock(schema, sessions):
    async def story():
        async with schema.store() as store:
            for round in range(10):
                names = [f"p{round}-{number}" for number in range(10)]
                there = [
                    a_submit(f"a{name}", pipeline=name, unique=True, key=f"a{name}")
                    for name in names
                ]
                back = [
                    a_submit(f"b{name}", pipeline=name, unique=True, key=f"{name}b")
                    for name in reversed(names)
                ]
                locks = [Acquire(name, "t", "w", 30.0) for name in names]
                await asyncio.gather(
                    store.apply([*there, *locks]), store.apply([*back, *reversed(locks)])
                )
            assert await store.count(RunFilter()) == {"queued": 100}

    before = deadlocks(schema)
    asyncio.run(story())
    assert deadlocks(schema) == before


def deadlocks(schema: Schema) -> int:
    return schema.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def test_a_batch_that_the_server_took_back_is_sent_again(schema):
    """A serialization failure or a deadlock: nothing was written, so nothing is written twice."""

    async def story():
        async with schema.store() as store:
            with psycopg.connect(schema.server.url(), autocommit=True) as connection:
                connection.execute(f"SET search_path TO {schema.name}; CREATE SEQUENCE tries")
                connection.execute(
                    "CREATE FUNCTION object() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    f"IF nextval('{schema.name}.tries') < 4 THEN RAISE serialization_failure; END "
                    "IF; "
                    "RETURN NEW; END $$; CREATE TRIGGER objecting BEFORE INSERT ON requests "
                    "FOR EACH ROW EXECUTE FUNCTION object()"
                )
            assert await apply_one(store, a_submit("r1")) == Submitted("r1", True, "queued")
            assert [event.seq for event in await store.history("r1")] == [1]
            with psycopg.connect(schema.server.url(), autocommit=True) as connection:
                connection.execute(
                    f"ALTER SEQUENCE {schema.name}.tries RESTART MINVALUE -999 START -999 "
                )
            with pytest.raises(
                StoreUnavailable, match="others changed the same rows, again and again"
            ):
                await apply_one(store, a_submit("r2"))
            assert await store.run("r2") is None

    asyncio.run(story())


# --- intake ---


def test_who_comes_second_with_a_key_waits_and_gets_the_first_ones_run(schema, sessions):
    async def story():
        async with schema.store() as store:
            first = begin(schema, sessions)
            first.apply(a_submit("r1", key="k"))
            second = asyncio.create_task(
                apply_one(store, a_submit("r2", key="k", fingerprint="f2"))
            )
            await in_the_way(schema, second)
            first.commit()
            assert await second == Submitted("r1", False, "queued", conflict=True)

    asyncio.run(story())


def test_who_comes_second_with_a_key_gets_a_run_if_the_first_one_gave_up(schema, sessions):
    async def story():
        async with schema.store() as store:
            first = begin(schema, sessions)
            first.apply(a_submit("r1", key="k"))
            second = asyncio.create_task(apply_one(store, a_submit("r2", key="k")))
            await in_the_way(schema, second)
            first.close()
            assert await second == Submitted("r2", True, "queued")

    asyncio.run(story())


def test_a_unique_slot_is_not_taken_by_a_submit_and_a_resume_at_once(schema, sessions):
    async def story():
        async with schema.store() as store:
            await store.apply([a_submit("r1", pipeline="solo", unique=True), a_claim()])
            await apply_one(store, Settle("r1", 1, "failed", error=an_error("no")))
            first = begin(schema, sessions)
            first.apply(a_submit("r2", pipeline="solo", unique=True))
            resume = asyncio.create_task(apply_one(store, Resume("r1", "ann")))
            await in_the_way(schema, resume)
            first.commit()
            assert await resume == Refused("failed", "r2")

    asyncio.run(story())


# --- claims, sweeps, prunes take only what nobody else has ---


def test_a_claim_passes_over_what_another_claim_is_about_to_take(schema, sessions):
    async def story():
        async with schema.store() as store:
            await store.apply([a_submit(f"r{number}") for number in range(4)])
            other = begin(schema, sessions)
            [claimed_by_other] = other.apply(a_claim(limit=2))
            ours = await apply_one(store, a_claim(limit=9))
            assert [[run.run for run in claimed] for claimed in (claimed_by_other, ours)] == [
                ["r0", "r1"],
                ["r2", "r3"],
            ]

    asyncio.run(story())


def test_a_sweep_and_a_prune_pass_over_what_is_locked(schema, sessions):
    async def story():
        async with schema.store() as store:
            await store.apply([*[a_submit(run) for run in ("r1", "r2")], a_claim(limit=2, ttl=0.0)])
            other = begin(schema, sessions)
            other.execute("SELECT 1 FROM open_runs WHERE id = 'r1' FOR UPDATE")
            assert await apply_one(store, Sweep()) == [("r2", "queued")]
            await store.apply([Cancel("r2", "ann")])
            other.execute("SELECT 1 FROM open_runs WHERE id = 'r2' FOR UPDATE")
            assert await apply_one(store, Prune(0.0, 0.0)) == []

    asyncio.run(story())


def test_a_fifo_lane_is_not_claimed_past_a_head_that_somebody_holds(schema, sessions):
    async def story():
        async with schema.store() as store:
            lead = Acquire("lane:line", "t", "w", 60.0)
            await store.apply([DefineLane("line", "fifo", "block"), lead])
            await store.apply([a_submit(run, lane="line") for run in ("r1", "r2")])
            other = begin(schema, sessions)
            other.execute("SELECT 1 FROM open_runs WHERE id = 'r1' FOR UPDATE")
            claim = Claim("w", "line", ["report"], 9, 30.0, token="t", term=1)
            assert await apply_one(store, claim) == []
            other.commit()
            assert [run.run for run in await apply_one(store, claim)] == ["r1"]  # type: ignore[attr-defined]

    asyncio.run(story())


def test_the_numbers_of_a_fifo_lane_rise_in_the_order_of_commits(schema, sessions):
    async def story():
        async with schema.store() as store:
            await store.apply([DefineLane("line", "fifo", "block")])
            first = begin(schema, sessions)
            first.apply(a_submit("r1", lane="line"))
            second = asyncio.create_task(apply_one(store, a_submit("r2", lane="line")))
            await in_the_way(schema, second)
            await apply_one(store, a_submit("elsewhere"))  # other lanes do not wait
            first.commit()
            await second
            assert [run.id for run in await store.runs(RunFilter(lane="line"))] == ["r2", "r1"]

    asyncio.run(story())


def test_two_tokens_at_once_do_not_both_get_a_new_lock(schema, sessions):
    async def story():
        async with schema.store() as store:
            first = begin(schema, sessions)
            assert first.apply(Acquire("lock", "a", "w1", 30.0)) == [Acquired(1)]
            second = asyncio.create_task(apply_one(store, Acquire("lock", "b", "w2", 30.0)))
            await in_the_way(schema, second)
            first.commit()
            second_run = await second
            assert isinstance(second_run, Held)
            assert (second_run.owner, second_run.epoch) == ("w1", 1)

    asyncio.run(story())


# --- the outbox ---


def test_the_outbox_does_not_run_ahead_of_a_transaction_that_is_still_open(schema, sessions):
    """Positions are taken before they are committed: a reader that went past an open one would
    never see it."""

    async def story():
        async with schema.store() as store:
            await apply_one(store, a_submit("r0"))
            slow = begin(schema, sessions)
            slow.apply(a_submit("r1"))
            await apply_one(store, a_submit("r2"))
            events = await store.outbox(0)
            assert [event.run for event in events] == ["r0"]
            slow.commit()
            events = await store.outbox(0)
            assert [event.run for event in events] == ["r0", "r1", "r2"]  # type: ignore[attr-defined]
            positions = [event.position for event in events]  # type: ignore[attr-defined]
            assert positions == sorted(positions)

    asyncio.run(story())


def test_a_transaction_that_was_given_up_does_not_hold_the_outbox_up(schema, sessions):
    async def story():
        async with schema.store() as store:
            slow = begin(schema, sessions)
            slow.apply(a_submit("r1"))
            await apply_one(store, a_submit("r2"))
            assert await store.outbox(0) == []
            slow.close()
            await until(
                lambda: schema.value(
                    "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'"
                )
            )
            events = await store.outbox(0)
            assert [event.run for event in events] == ["r2"]  # type: ignore[attr-defined]

    asyncio.run(story())


def test_the_outbox_goes_on_past_the_end_of_the_numbers_of_locks(schema, sessions):
    """Advisory locks are numbered with 31 bits, positions with 63."""

    async def story():
        async with schema.store() as store:
            schema.value("SELECT setval('positions', 2147483647 - 2)")
            slow = begin(schema, sessions)
            slow.apply(a_submit("r1"))
            for number in range(2, 6):
                await apply_one(store, a_submit(f"r{number}"))
            assert await store.outbox(0) == []
            slow.commit()
            events = await store.outbox(0)
            assert [event.run for event in events] == [f"r{number}" for number in range(1, 6)]  # type: ignore[attr-defined]

    asyncio.run(story())


# --- somebody who does not let go ---


def test_a_row_that_stays_locked_is_an_error_that_says_so_and_writes_nothing(schema, sessions):
    async def story():
        async with schema.store(timeout="500ms") as store:
            await started(store, "r1", "r2")
            other = begin(schema, sessions)
            other.execute("SELECT 1 FROM open_runs WHERE id = 'r2' FOR UPDATE")
            with pytest.raises(
                StoreUnavailable, match="a row stayed locked by somebody else; nothing was accepted"
            ):
                await store.apply([a_checkpoint("r1", 1), a_checkpoint("r2", 1)])
            assert await store.checkpoints("r1") == []
            assert await apply_one(store, a_checkpoint("r1", 1)) is None

    asyncio.run(story())


def test_two_who_take_a_new_lock_at_once_have_one_winner(schema, sessions):
    """There is no row yet that the second could wait for, and its time may be from before the
    first's lease was granted."""
    ahead = 0.3

    async def story():
        async with schema.store() as store:
            first = begin(schema, sessions)
            assert first.apply(Acquire("new", "a", "first", 30.0)) == [Acquired(1)]
            # As if it had been granted after the second one has come.
            first.execute(f"UPDATE locks SET lease_until = lease_until + {ahead}")
            [granted] = first.row("SELECT lease_until - lease_ttl FROM locks")
            second = asyncio.create_task(apply_one(store, Acquire("new", "b", "second", 30.0)))
            await until(lambda: waiting(schema) == 1)
            await until(
                lambda: schema.value(f"SELECT extract(epoch FROM clock_timestamp()) > {granted}")
            )
            first.commit()
            reply = await second
            assert isinstance(reply, Held)
            assert reply.owner == "first"

    asyncio.run(story())
