"""Commands that share a statement, and events that share a row with their cause: nobody can tell
the difference."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.integration.postgres.conftest import Schema

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.model.commands import (
    STALE,
    Acquire,
    Acquired,
    Claim,
    Command,
    DefineLane,
    ForceRelease,
    Quarantine,
    R,
    ReleaseLock,
    RenewLocks,
    Settle,
    Submitted,
)
from holdfast.testing.contracts.store_topics.harness import (
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
)


def run_story(schema: Schema, story: Callable[[PostgresStore], Awaitable[None]]) -> None:
    async def with_store() -> None:
        async with schema.store() as store:
            await story(store)

    asyncio.run(with_store())


async def apply_one(store: PostgresStore, command: Command[R]) -> R:
    return (await store.apply([command]))[0]


def test_what_happens_to_one_lock_in_a_batch_happens_in_order(schema: Schema) -> None:
    async def story(store: PostgresStore) -> None:
        def take(token: str) -> Acquire:
            return Acquire("a", token, "w", 30.0)

        expected: list[tuple[Command[Any], Any]] = [
            (take("t1"), Acquired(1)),
            (Acquire("b", "t1", "w", 30.0), Acquired(1)),
            (ReleaseLock("a", "t1"), True),
            (ReleaseLock("b", "t0"), False),
            (take("t2"), Acquired(2)),
            (RenewLocks([("a", "t2")], 60.0), []),
            (ForceRelease("a", "ann", ""), True),
            (take("t3"), Acquired(4)),
            (take("t3"), Acquired(4)),
            (ReleaseLock("a", "t3"), True),
            (ReleaseLock("a", "t3"), False),
            (take("t4"), Acquired(5)),
        ]
        assert await store.apply([command for command, _ in expected]) == [
            reply for _, reply in expected
        ]

    run_story(schema, story)


def test_runs_of_a_group_that_are_there_already_do_not_keep_the_others_out(schema: Schema) -> None:
    async def story(store: PostgresStore) -> None:
        await apply_one(store, a_submit("r2"))
        group = [a_submit("r1"), a_submit("r2"), a_submit("r3", delay=60.0), a_submit("r1")]
        assert await store.apply(group) == [
            Submitted(submit.id, True, "queued") for submit in group
        ]
        assert [len(await store.history(run)) for run in ("r1", "r2", "r3")] == [1, 1, 1]
        [claimed] = await store.apply([a_claim(limit=9)])
        assert {run.run for run in claimed} == {"r1", "r2"}

    run_story(schema, story)


def test_a_step_that_completes_again_keeps_the_event_of_the_first_time(schema: Schema) -> None:
    async def story(store: PostgresStore) -> None:
        await store.apply([a_submit("r1"), a_claim()])
        await store.apply(
            [a_checkpoint("r1", 1, "a", record='{"try":1}'), a_checkpoint("r1", 1, "a", key="item")]
        )
        await store.apply([Settle("r1", 1, "retry", error=an_error("no")), a_claim()])
        again = [
            a_checkpoint("r1", 2, step, record='{"try":2}', value="2") for step in ("b", "a", "c")
        ]
        repeated = a_checkpoint("r1", 2, "a", record='{"try":3}', value="3", skipped=True)
        assert await store.apply([*again, a_checkpoint("r1", 1, "d"), repeated]) == [
            None,
            None,
            None,
            STALE,
            None,
        ]
        await store.apply([Quarantine("r1", 2, "b", "", "bad")])
        history = await store.history("r1")
        assert [(event.type, event.data) for event in history if event.type.startswith("step")] == [
            ("step.completed", '{"try":1}'),
            *[("step.completed", '{"try":2}')] * 3,
        ]
        assert [event.seq for event in history] == list(range(1, 10))
        assert await store.outbox(0) == history
        stored = {
            (checkpoint.step, checkpoint.key): checkpoint.value
            for checkpoint in await store.checkpoints("r1")
        }
        assert stored == {("a", ""): "3", ("a", "item"): "1", ("c", ""): "2"}

    run_story(schema, story)


def test_the_last_checkpoint_of_a_run_is_found_like_all_others(schema: Schema) -> None:
    """It is stored with the result; unless it is an item's, or was there before."""

    async def story(store: PostgresStore) -> None:
        runs = ("same", "other", "none", "item", "known", "nothing")
        await store.apply([*[a_submit(run) for run in runs], a_claim(limit=9)])
        await store.apply([a_checkpoint("known", 1, "a", record='{"try":1}')])
        last = {
            run: a_checkpoint(run, 1, "z", value="7", record='{"n":1}', skipped=run == "other")
            for run in runs
        }
        last["item"] = a_checkpoint("item", 1, "z", "k", value="7")
        last["known"] = a_checkpoint("known", 1, "a", value="7", record='{"try":2}')
        results = {"same": "7", "none": None}
        settles = [
            Settle(
                run,
                1,
                "succeeded",
                result=results.get(run, "8"),
                last=None if run == "nothing" else last[run],
            )
            for run in runs
        ]
        assert await store.apply([*settles, Settle("same", 1, "succeeded")]) == [None] * 6 + [STALE]
        for run in runs:
            run_view = await store.run(run)
            assert run_view is not None
            assert run_view.result == results.get(run, "8")
            checkpoints = [(c.step, c.key, c.value, c.epoch) for c in await store.checkpoints(run)]
            assert checkpoints == (
                [] if run == "nothing" else [(last[run].step, last[run].key, "7", 1)]
            ), run
            types = [event.type for event in await store.history(run)][2:]
            event_types = {"other": ["step.skipped"], "item": [], "nothing": []}.get(
                run, ["step.completed"]
            )
            assert types == [*event_types, "run.completed"], run
        assert (await store.history("known"))[2].data == '{"try":1}'

    run_story(schema, story)


def test_the_outbox_is_read_on_between_the_two_events_of_a_result(schema: Schema) -> None:
    async def story(store: PostgresStore) -> None:
        await store.apply(
            [a_submit("r1"), a_claim(), Settle("r1", 1, "succeeded", last=a_checkpoint("r1", 1))]
        )
        history = await store.history("r1")
        for number, event in enumerate(history):
            assert await store.outbox(event.position - 1, 1) == [event]
            assert await store.outbox(event.position) == history[number + 1 :]

    run_story(schema, story)


def test_the_head_of_a_fifo_lane_is_the_first_accepted_whatever_its_priority_and_delay(
    schema: Schema,
) -> None:
    async def story(store: PostgresStore) -> None:
        await store.apply(
            [DefineLane("line", "fifo", "block"), Acquire("lane:line", "t", "w", 60.0)]
        )
        await store.apply(
            [a_submit("r1", lane="line", priority=0), a_submit("r2", lane="line", priority=9)]
        )
        await store.apply(
            [a_submit("r3", lane="line", priority=5), a_submit("r4", lane="line", delay=60.0)]
        )
        await store.apply([a_submit("r5", lane="line", priority=9)])
        claim = Claim("w", "line", ["report"], 9, 30.0, token="t", term=1)
        for run in ("r1", "r2", "r3"):
            assert [claimed.run for claimed in await apply_one(store, claim)] == [run]
            await apply_one(store, Settle(run, 1, "succeeded"))
        assert await apply_one(store, claim) == []
        assert [lane.queued for lane in await store.lanes() if lane.name == "line"] == [2]

    run_story(schema, story)
