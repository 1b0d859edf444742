"""Claiming from a parallel lane."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Claimed, SaveProgress
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    store_test,
)


class ClaimTopics(StoreTopics):
    @store_test
    async def test_a_claim_hands_over_what_the_worker_needs(self, harness: StoreHarness) -> None:
        await harness.submit("r1", tenant="acme", lane="fast", input='{"a":1}', max_attempts=4)
        assert await harness.claim(lane="fast") == [
            Claimed("r1", "acme", "report", "fast", 1, 1, 4, '{"a":1}', "{}", False, "f1")
        ]

    @store_test
    async def test_a_claim_starts_the_run(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        harness.clock.advance(5.0)
        await harness.claim(worker="w7")
        run = await harness.run("r1")
        assert (run.state, run.worker, run.epoch, run.attempts) == ("running", "w7", 1, 1)
        assert (run.started, run.finished) == (harness.clock.now(), None)
        assert await harness.last_event("r1") == (
            "run.started",
            {"attempt": 1, "worker": "w7", "epoch": 1},
        )

    @store_test
    async def test_a_run_has_one_worker_at_a_time(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        assert await harness.claim(worker="w2", limit=10) == []

    @store_test
    async def test_runs_are_claimed_in_the_order_of_acceptance(self, harness: StoreHarness) -> None:
        for run in ("r2", "r1", "r3"):
            await harness.submit(run)
        assert [claim.run for claim in await harness.claim(limit=2)] == ["r2", "r1"]
        assert [claim.run for claim in await harness.claim(limit=2)] == ["r3"]
        assert await harness.claim(limit=2) == []

    @store_test
    async def test_a_higher_priority_goes_first(self, harness: StoreHarness) -> None:
        for run, priority in (("r1", 0), ("r2", 5), ("r3", -1), ("r4", 5)):
            await harness.submit(run, priority=priority)
        assert [claim.run for claim in await harness.claim(limit=9)] == ["r2", "r4", "r1", "r3"]

    @store_test
    async def test_a_claim_takes_no_more_than_its_limit(self, harness: StoreHarness) -> None:
        for number in range(5):
            await harness.submit(f"r{number}")
        assert await harness.claim(limit=0) == []
        assert len(await harness.claim(limit=3)) == 3
        assert await harness.store.count(RunFilter()) == {"queued": 2, "running": 3}

    @store_test
    async def test_only_the_named_pipelines_are_claimed(self, harness: StoreHarness) -> None:
        await harness.submit("r1", pipeline="other", priority=9)
        await harness.submit("r2", pipeline="report")
        assert await harness.claim(pipelines=[], limit=9) == []
        assert [claim.run for claim in await harness.claim(pipelines=["report"], limit=9)] == ["r2"]
        assert await harness.state("r1") == "queued"

    @store_test
    async def test_lanes_are_apart(self, harness: StoreHarness) -> None:
        await harness.submit("r1", lane="fast")
        assert await harness.claim(lane="default") == []
        assert [claim.run for claim in await harness.claim(lane="fast")] == ["r1"]

    @store_test
    async def test_inputs_together_stay_below_max_bytes(self, harness: StoreHarness) -> None:
        for number in range(4):
            await harness.submit(f"r{number}", input=f'"{"x" * 98}"')
        assert [claim.run for claim in await harness.claim(limit=9, max_bytes=250)] == ["r0", "r1"]

    @store_test
    async def test_max_bytes_counts_bytes_and_not_characters(self, harness: StoreHarness) -> None:
        for number in range(4):
            await harness.submit(f"r{number}", input=f'"{"☃" * 30}"')
        assert [claim.run for claim in await harness.claim(limit=9, max_bytes=250)] == ["r0", "r1"]

    @store_test
    async def test_one_run_is_claimed_however_large_it_is(self, harness: StoreHarness) -> None:
        await harness.submit("r1", input=f'"{"x" * 1000}"')
        await harness.submit("r2")
        assert [claim.run for claim in await harness.claim(limit=9, max_bytes=10)] == ["r1"]
        assert [claim.run for claim in await harness.claim(limit=9, max_bytes=10)] == ["r2"]

    @store_test
    async def test_every_claim_raises_epoch_and_attempt(self, harness: StoreHarness) -> None:
        assert await harness.start("r1") == 1
        for attempt in (2, 3):
            await harness.lose_worker()
            [claimed] = await harness.claim()
            assert (claimed.epoch, claimed.attempt) == (attempt, attempt)

    @store_test
    async def test_a_run_knows_when_it_was_first_started(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        first = harness.clock.now()
        await harness.lose_worker()
        await harness.restart("r1")
        assert (await harness.run("r1")).started == first

    @store_test
    async def test_a_run_claimed_before_is_resumed(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        await harness.lose_worker()
        assert [claim.resumed for claim in await harness.claim()] == [True]

    @store_test
    async def test_a_run_that_takes_over_results_is_resumed(self, harness: StoreHarness) -> None:
        await harness.submit("r1", checkpoints=[Checkpoint("s", "", "1", "c", "t", "f")])
        assert [claim.resumed for claim in await harness.claim()] == [True]

    @store_test
    async def test_progress_is_handed_to_the_next_attempt(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        text = '{"steps":{"s":{"step":"s","status":"in_progress","done":3}}}'
        await harness.do(SaveProgress("r1", epoch, text))
        await harness.lose_worker()
        assert [claim.progress for claim in await harness.claim()] == [text]
        assert (await harness.run("r1")).progress.steps["s"].done == 3

    @store_test
    async def test_a_lane_that_nobody_defined_is_parallel(self, harness: StoreHarness) -> None:
        for run in ("r1", "r2"):
            await harness.submit(run, lane="unheard-of")
        assert len(await harness.claim(lane="unheard-of", limit=9, ttl=TTL)) == 2
