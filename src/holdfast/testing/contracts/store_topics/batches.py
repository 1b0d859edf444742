"""Batches: commands on one run, lane, lock or key take effect in the order given, as if each came
alone."""

from __future__ import annotations

import asyncio

from holdfast.model.commands import (
    STALE,
    Acquire,
    Acquired,
    Bury,
    Cancel,
    Held,
    LogLine,
    PauseRun,
    Quarantine,
    Refused,
    ReleaseLock,
    Renew,
    Resume,
    SaveProgress,
    Settle,
    Submitted,
    Sweep,
)
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    a_claim,
    a_submit,
    an_error,
    store_test,
)


def progress(count: int) -> str:
    return f'{{"steps":{{"s":{{"step":"s","status":"in_progress","done":{count}}}}}}}'


class BatchTopics(StoreTopics):
    @store_test
    async def test_an_empty_batch_has_no_answers(self, harness: StoreHarness) -> None:
        assert await harness.apply() == []

    @store_test
    async def test_two_submits_with_one_key_make_one_run(self, harness: StoreHarness) -> None:
        replies = await harness.apply(
            a_submit("r1", key="k1"),
            a_submit("r2", key="k1"),
            a_submit("r3", key="k1", fingerprint="f2"),
        )
        assert replies == [
            Submitted("r1", True, "queued"),
            Submitted("r1", False, "queued"),
            Submitted("r1", False, "queued", conflict=True),
        ]
        assert await harness.store.run("r2") is None
        assert await harness.events("r1") == ["run.queued"]

    @store_test
    async def test_two_submits_with_one_id_make_one_run(self, harness: StoreHarness) -> None:
        assert (
            await harness.apply(a_submit("r1"), a_submit("r1"))
            == [Submitted("r1", True, "queued")] * 2
        )
        assert await harness.events("r1") == ["run.queued"]

    @store_test
    async def test_runs_of_many_kinds_are_accepted_as_they_were_given(
        self, harness: StoreHarness
    ) -> None:
        """Also when one of them is a repeated request, and with one that has a key."""
        submits = [
            a_submit("r1"),
            a_submit("r2", tenant="blue", pipeline="solo", priority=3, fingerprint="f2"),
            a_submit("r3", lane="fast", max_attempts=2, parent="r0", input='"\\u00e9\\u0000"'),
            a_submit("r4", delay=60.0),
            a_submit("r5"),
        ]
        new = [Submitted(command.id, True, "queued") for command in submits]
        assert await harness.apply(*submits[:4]) == new[:4]
        assert await harness.apply(*submits) == new
        assert await harness.apply(submits[0], a_submit("r6", key="k6"), submits[1])
        for command in submits:
            run = await harness.run(command.id)
            assert (run.tenant, run.pipeline, run.lane) == (
                command.tenant,
                command.pipeline,
                command.lane,
            )
            assert (run.input, run.fingerprint, run.parent) == (
                command.input,
                command.fingerprint,
                command.parent,
            )
            assert (run.priority, run.attempt_limit, run.key) == (
                command.priority,
                command.max_attempts,
                None,
            )
            assert await harness.events(command.id) == ["run.queued"]
        assert [run.run for run in await harness.do(a_claim(limit=9))] == ["r1", "r2", "r5", "r6"]
        harness.clock.advance(60.0)
        assert [run.run for run in await harness.do(a_claim(limit=9))] == ["r4"]

    @store_test
    async def test_two_submits_for_one_unique_slot_make_one_run(
        self, harness: StoreHarness
    ) -> None:
        replies = await harness.apply(
            a_submit("r1", pipeline="solo", unique=True),
            a_submit("r2", pipeline="solo", unique=True),
        )
        assert replies == [Submitted("r1", True, "queued"), Submitted("r1", False, "queued")]

    @store_test
    async def test_a_run_is_submitted_and_claimed_in_one_batch(self, harness: StoreHarness) -> None:
        _, claimed, _, again = await harness.apply(
            a_submit("r1"), a_claim(), a_submit("r2"), a_claim(limit=9)
        )
        assert [claim.run for claim in claimed] == ["r1"]
        assert [claim.run for claim in again] == ["r2"]

    @store_test
    async def test_a_claim_does_not_see_what_is_submitted_after_it(
        self, harness: StoreHarness
    ) -> None:
        none_claimed, _ = await harness.apply(a_claim(), a_submit("r1"))
        assert none_claimed == []
        assert await harness.state("r1") == "queued"

    @store_test
    async def test_two_claims_share_the_work(self, harness: StoreHarness) -> None:
        for number in range(5):
            await harness.submit(f"r{number}")
        first, second, third = await harness.apply(
            a_claim(limit=2, worker="w1"),
            a_claim(limit=9, worker="w2"),
            a_claim(limit=9, worker="w3"),
        )
        assert [claim.run for claim in first] == ["r0", "r1"]
        assert [claim.run for claim in second] == ["r2", "r3", "r4"]
        assert third == []

    @store_test
    async def test_a_whole_life_in_one_batch(self, harness: StoreHarness) -> None:
        replies = await harness.apply(
            a_submit("r1"),
            a_claim(),
            a_checkpoint("r1", 1, "a"),
            a_checkpoint("r1", 1, "b"),
            Settle("r1", 1, "retry", error=an_error("busy")),
            a_checkpoint("r1", 1, "c"),
            a_claim(),
            a_checkpoint("r1", 2, "c"),
            Settle("r1", 2, "succeeded", result="1"),
            Settle("r1", 2, "failed", error=an_error("no")),
        )
        assert replies[4:6] == [None, STALE]
        assert replies[7:] == [None, None, STALE]
        assert await harness.events("r1") == [
            "run.queued",
            "run.started",
            "step.completed",
            "step.completed",
            "run.retrying",
            "run.started",
            "step.completed",
            "run.completed",
        ]
        assert await harness.store.dead_letters() == []

    @store_test
    async def test_an_attempt_is_settled_once_in_a_batch(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        replies = await harness.apply(
            Settle("r1", epoch, "succeeded", result="1"),
            Settle("r1", epoch, "succeeded", result="2"),
            Settle("r1", epoch, "failed", error=an_error("no")),
        )
        assert replies == [None, STALE, STALE]
        assert (await harness.run("r1")).result == "1"
        assert await harness.events("r1") == ["run.queued", "run.started", "run.completed"]

    @store_test
    async def test_the_first_of_two_outcomes_counts(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        replies = await harness.apply(
            Settle("r1", epoch, "handover"),
            Settle("r1", epoch, "succeeded", last=a_checkpoint("r1", epoch)),
        )
        assert replies == [None, STALE]
        assert await harness.state("r1") == "queued"
        assert await harness.store.checkpoints("r1") == []

    @store_test
    async def test_a_step_saved_twice_in_a_batch_completes_once(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        first, second = a_checkpoint("r1", epoch, value="1"), a_checkpoint("r1", epoch, value="2")
        assert await harness.apply(first, second) == [None, None]
        assert await harness.events("r1") == ["run.queued", "run.started", "step.completed"]
        assert [c.value for c in await harness.store.checkpoints("r1")] == ["2"]

    @store_test
    async def test_the_last_progress_of_a_batch_stays(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.apply(*[SaveProgress("r1", epoch, progress(count)) for count in (3, 1, 2)])
        assert (await harness.run("r1")).progress.steps["s"].done == 2

    @store_test
    async def test_progress_saved_before_the_settlement_does_not_outlive_it(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        settle = Settle("r1", epoch, "succeeded", progress=progress(9))
        assert await harness.apply(SaveProgress("r1", epoch, progress(1)), settle) == [None, None]
        assert (await harness.run("r1")).progress.steps["s"].done == 9

    @store_test
    async def test_log_lines_of_a_batch_stay_in_order(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        await harness.start("r2")
        await harness.apply(*[LogLine(f"r{1 + n % 2}", 1, "info", "s", str(n)) for n in range(10)])
        assert [line.message for line in await harness.store.logs("r1")] == [
            "0",
            "2",
            "4",
            "6",
            "8",
        ]

    @store_test
    async def test_what_was_quarantined_in_a_batch_can_be_saved_again(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        replies = await harness.apply(
            a_checkpoint("r1", epoch, value="1"),
            Quarantine("r1", epoch, "s", "", "bad"),
            a_checkpoint("r1", epoch, value="2"),
        )
        assert replies == [None, 1, None]
        assert [c.value for c in await harness.store.checkpoints("r1")] == ["2"]
        types = await harness.events("r1")
        assert types[2:] == ["step.completed", "checkpoint.quarantined", "step.completed"]

    @store_test
    async def test_after_a_cancel_nothing_of_the_batch_is_written(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        replies = await harness.apply(
            a_checkpoint("r1", epoch, "a"),
            Cancel("r1", "ann"),
            a_checkpoint("r1", epoch, "b"),
            Settle("r1", epoch, "succeeded", result="1"),
            Renew([("r1", epoch)], TTL),
        )
        assert replies == [None, None, STALE, STALE, [("r1", epoch)]]
        assert [c.step for c in await harness.store.checkpoints("r1")] == ["a"]

    @store_test
    async def test_pausing_and_resuming_in_a_batch(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        replies = await harness.apply(
            PauseRun("r1", "ann"),
            PauseRun("r1", "ann"),
            Resume("r1", "ann"),
            Resume("r1", "ann"),
            a_claim(),
        )
        assert replies[:4] == [None, Refused("paused"), None, Refused("queued")]
        assert [claim.epoch for claim in replies[4]] == [epoch + 2]

    @store_test
    async def test_sweeping_and_claiming_in_a_batch(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        harness.clock.advance(TTL)
        swept, claimed, late, saved = await harness.apply(
            Sweep(), a_claim(), a_checkpoint("r1", epoch), a_checkpoint("r1", epoch + 1)
        )
        assert swept == [("r1", "queued")]
        assert [claim.epoch for claim in claimed] == [epoch + 1]
        assert (late, saved) == (STALE, None)

    @store_test
    async def test_two_tokens_in_one_batch_do_not_both_get_the_lock(
        self, harness: StoreHarness
    ) -> None:
        replies = await harness.apply(
            Acquire("lock", "a", "w1", TTL),
            Acquire("lock", "b", "w2", TTL),
            Acquire("lock", "a", "w1", TTL),
            ReleaseLock("lock", "a"),
            Acquire("lock", "b", "w2", TTL),
        )
        assert replies == [Acquired(1), Held("w1", TTL, 1), Acquired(1), True, Acquired(2)]

    @store_test
    async def test_a_message_buried_twice_in_a_batch_is_new_once(
        self, harness: StoreHarness
    ) -> None:
        bury = Bury("m1", "bus", "bad", b"x")
        assert await harness.apply(bury, bury) == [True, False]

    @store_test
    async def test_many_commands_of_every_kind_keep_their_places(
        self, harness: StoreHarness
    ) -> None:
        for number in range(20):
            await harness.submit(f"r{number}")
        await harness.claim(limit=20)
        commands = []
        for number in range(20):
            run = f"r{number}"
            commands += [
                a_checkpoint(run, 1 + number % 2, "a"),
                LogLine(run, 1, "info", "s", "x"),
                SaveProgress(run, 1 + number % 2, progress(number)),
                Settle(run, 1, "succeeded", result=str(number)),
                a_checkpoint(run, 1, "b"),
            ]
        replies = await harness.apply(*commands)
        for number in range(20):
            fenced = STALE if number % 2 else None
            assert replies[5 * number : 5 * number + 5] == [fenced, None, fenced, None, STALE]
            assert (await harness.run(f"r{number}")).result == str(number)

    @store_test
    async def test_overlapping_calls_are_answered_each_for_itself(
        self, harness: StoreHarness
    ) -> None:
        submits = [
            harness.apply(a_submit(f"r{number}", key=f"k{number % 5}")) for number in range(50)
        ]
        replies = [reply for [reply] in await asyncio.gather(*submits)]
        assert sum(reply.created for reply in replies) == 5
        claims = await asyncio.gather(*[harness.claim(worker=f"w{number}") for number in range(10)])
        claimed = [claim.run for batch in claims for claim in batch]
        assert len(claimed) == len(set(claimed)) == 5

    @store_test
    async def test_calls_from_another_thread_and_loop_are_served(
        self, harness: StoreHarness
    ) -> None:
        def elsewhere() -> list[object]:
            return asyncio.run(harness.store.apply([a_submit("r1"), a_claim()]))

        submitted, claimed = await asyncio.to_thread(elsewhere)
        assert submitted == Submitted("r1", True, "queued")
        assert await harness.do(a_checkpoint("r1", claimed[0].epoch)) is None  # type: ignore[index]
