"""Fifo lanes: one leader, one run at a time, strict order whatever happens to the head."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import (
    Acquire,
    Acquired,
    Cancel,
    DefineLane,
    Discard,
    ForceRelease,
    MarkRedriven,
    PauseRun,
    ReleaseLock,
    Resume,
    Sweep,
)
from holdfast.ports.store import LaneInfo
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    Leader,
    StoreHarness,
    StoreTopics,
    a_claim,
    store_test,
)

OTHER = "t2"


async def three_in_line(harness: StoreHarness, head: str = "dead-letter", **fields: Any) -> Leader:
    leader = await harness.fifo(head=head)
    for run in ("r1", "r2", "r3"):
        await harness.submit(run, lane="line", **fields)
    return leader


class LaneTopics(StoreTopics):
    # --- definition ---

    @store_test
    async def test_a_lanes_order_never_changes_but_its_head_policy_does(
        self, harness: StoreHarness
    ) -> None:
        assert await harness.do(DefineLane("line", "fifo", "block")) == "fifo"
        assert await harness.do(DefineLane("line", "parallel", "skip")) == "fifo"
        assert await harness.store.lanes() == [LaneInfo("line", "fifo", "skip", 0, 0)]

    @store_test
    async def test_lanes_show_what_is_in_them(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        accepted = harness.clock.now()
        await leader.start("r1")
        harness.clock.advance(3)
        await harness.submit("p1", lane="apart", tenant="zoe")
        harness.clock.advance(3)
        await harness.submit("p2", lane="apart", tenant="ann", priority=7)
        assert await harness.store.lanes() == [
            LaneInfo("apart", "parallel", "dead-letter", 2, 0, oldest=accepted + 3),
            LaneInfo(
                "line", "fifo", "dead-letter", 2, 1, "owner of t1", leader.term, oldest=accepted
            ),
        ]

    @store_test
    async def test_lanes_count_the_runs_that_wait_for_the_end_of_a_delay(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness)
        await harness.settle("r1", await leader.start("r1"), "retry", delay=30.0)
        await harness.submit("r4", lane="line", delay=60.0)
        await harness.submit("p1", lane="apart", delay=60.0)
        await harness.submit("p2", lane="apart")

        async def counts() -> list[tuple[int, int]]:
            return [(lane.queued, lane.delayed) for lane in await harness.store.lanes()]

        assert await counts() == [(2, 1), (4, 2)]
        harness.clock.advance(30.0)
        assert await counts() == [(2, 1), (4, 1)]
        await harness.settle("r1", await leader.start("r1"), "succeeded")
        await harness.do(Cancel("r4", "ann"))
        assert await counts() == [(2, 1), (2, 0)]
        harness.clock.advance(30.0)
        assert await counts() == [(2, 0), (2, 0)]

    @store_test
    async def test_a_lane_that_nobody_defined_shows_what_waits_in_it(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", lane="apart", delay=60.0)
        apart = LaneInfo("apart", "parallel", "dead-letter", 1, 0, delayed=1)
        assert await harness.store.lanes() == [apart]
        await harness.do(Cancel("r1", "ann"))
        assert await harness.store.lanes() == []

    # --- the leader ---

    @store_test
    async def test_only_the_leader_claims(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        assert await harness.claim(lane="line") == []
        assert await leader.claim(token=OTHER) == []
        assert await leader.claim(term=leader.term + 1) == []
        assert await leader.claim(term=leader.term - 1) == []
        assert await leader.claim(token=None, term=0) == []
        await leader.start("r1")

    @store_test
    async def test_nobody_claims_from_a_lane_that_was_never_led(
        self, harness: StoreHarness
    ) -> None:
        await harness.do(DefineLane("line", "fifo", "block"))
        await harness.submit("r1", lane="line")
        assert await harness.do(a_claim(lane="line")) == []
        assert await harness.do(a_claim(lane="line", token=OTHER, term=1)) == []

    @store_test
    async def test_a_leader_whose_term_ended_claims_nothing(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        harness.clock.advance(10_000.0)
        assert await leader.claim() == []

    @store_test
    async def test_a_leader_deposed_by_force_claims_nothing(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await harness.do(ForceRelease("lane:line", "ann", "stuck"))
        assert await leader.claim() == []
        again = await harness.lead()
        assert again.term > leader.term
        assert await leader.claim() == []
        await again.start("r1")

    @store_test
    async def test_a_leader_that_resigned_claims_nothing(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        assert await harness.do(ReleaseLock("lane:line", "t1")) is True
        assert await leader.claim() == []

    @store_test
    async def test_the_order_survives_a_change_of_leader(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await harness.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r2")
        harness.clock.advance(10_000.0)
        other = await harness.lead(by=OTHER)
        assert other.term == leader.term + 1
        # The dead leader's run is still marked running: nothing may pass it before it is swept.
        assert await other.claim() == []
        assert await harness.do(Sweep()) == [("r2", "queued")]
        await harness.settle("r2", await other.start("r2"), "succeeded")
        await other.start("r3")

    # --- one at a time, in order ---

    @store_test
    async def test_one_run_at_a_time_in_the_order_of_acceptance(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness)
        for run in ("r1", "r2", "r3"):
            epoch = await leader.start(run)
            assert await leader.claim() == []
            await harness.settle(run, epoch, "succeeded")
        assert await leader.claim() == []

    @store_test
    async def test_priorities_do_not_count_in_a_fifo_lane(self, harness: StoreHarness) -> None:
        leader = await harness.fifo()
        await harness.submit("r1", lane="line", priority=0)
        await harness.submit("r2", lane="line", priority=9)
        await leader.start("r1")

    @store_test
    async def test_a_limit_of_nothing_claims_nothing(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        assert await leader.claim(limit=0) == []

    @store_test
    async def test_a_head_larger_than_max_bytes_is_claimed(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        assert [claim.run for claim in await leader.claim(max_bytes=1)] == ["r1"]

    @store_test
    async def test_a_retry_keeps_its_place_at_the_head(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await harness.settle("r1", await leader.start("r1"), "retry", delay=5.0)
        assert await leader.claim() == []
        harness.clock.advance(5.0)
        await leader.start("r1")

    @store_test
    async def test_a_delayed_head_is_waited_for(self, harness: StoreHarness) -> None:
        leader = await harness.fifo()
        await harness.submit("r1", lane="line", delay=60.0)
        await harness.submit("r2", lane="line")
        assert await leader.claim() == []
        harness.clock.advance(60.0)
        await leader.start("r1")

    @store_test
    async def test_a_head_of_another_pipeline_is_not_passed(self, harness: StoreHarness) -> None:
        leader = await harness.fifo()
        await harness.submit("r1", lane="line", pipeline="other")
        await harness.submit("r2", lane="line", pipeline="report")
        assert await leader.claim(pipelines=["report"]) == []
        assert [claim.run for claim in await leader.claim(pipelines=["other"])] == ["r1"]

    @store_test
    async def test_a_hand_over_keeps_its_place(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await harness.settle("r1", await leader.start("r1"), "handover")
        await leader.start("r1")

    @store_test
    async def test_a_vanished_workers_run_keeps_its_place(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await leader.start("r1")
        harness.clock.advance(TTL)
        # Its lease has ended, but until the sweep has said so nothing is claimed.
        assert await leader.claim() == []
        await harness.do(Sweep())
        await leader.start("r1")

    @store_test
    async def test_a_paused_head_lets_the_lane_go_on_and_gets_its_place_back(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness)
        await harness.do(PauseRun("r1", "ann"))
        await harness.settle("r2", await leader.start("r2"), "succeeded")
        await harness.do(Resume("r1", "ann"))
        await harness.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r3")

    @store_test
    async def test_a_cancelled_head_lets_the_lane_go_on(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        await leader.start("r1")
        await harness.do(Cancel("r1", "ann"))
        await leader.start("r2")

    @store_test
    async def test_lanes_do_not_hold_one_another_up(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness)
        other = await harness.fifo("second")
        await harness.submit("s1", lane="second")
        await leader.start("r1")
        await other.start("s1")

    # --- a failed head ---

    @store_test
    async def test_policy_dead_letter_keeps_the_failed_run_and_goes_on(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "dead-letter")
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert [letter.id for letter in await harness.store.dead_letters()] == ["run:r1"]
        await leader.start("r2")

    @store_test
    async def test_policy_skip_goes_on_without_a_dead_letter(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness, "skip")
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert await harness.state("r1") == "failed"
        assert await harness.store.dead_letters(open_only=False) == []
        await leader.start("r2")

    @store_test
    async def test_policy_skip_leaves_no_dead_letter_of_vanished_workers_either(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "skip", max_attempts=1)
        await leader.start("r1")
        assert await harness.lose_worker() == [("r1", "failed")]
        assert await harness.store.dead_letters(open_only=False) == []
        await leader.start("r2")

    @store_test
    async def test_head_policies_are_for_fifo_lanes_only(self, harness: StoreHarness) -> None:
        for head in ("skip", "block"):
            await harness.do(DefineLane(head, "parallel", head))
            await harness.fail(f"{head}1", lane=head)
            assert (await harness.dead_letter(f"{head}1")).closed is None
            await harness.start(f"{head}2", lane=head)

    @store_test
    async def test_policy_block_waits_until_the_run_is_resumed(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness, "block")
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert await leader.claim() == []
        assert [lane.blocked_by for lane in await harness.store.lanes()] == ["r1"]
        await harness.do(Resume("r1", "ann"))
        assert [lane.blocked_by for lane in await harness.store.lanes()] == [None]
        await harness.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r2")

    @store_test
    async def test_policy_block_waits_until_the_dead_letter_is_discarded(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "block")
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert await harness.do(Discard("run:r1", "ann", "known")) is True
        assert [lane.blocked_by for lane in await harness.store.lanes()] == [None]
        await leader.start("r2")

    @store_test
    async def test_policy_block_holds_when_every_worker_vanished(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "block", max_attempts=1)
        await leader.start("r1")
        assert await harness.lose_worker() == [("r1", "failed")]
        assert await leader.claim() == []

    @store_test
    async def test_policy_block_holds_again_when_the_resumed_run_fails_again(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "block")
        await harness.settle("r1", await leader.start("r1"), "failed")
        await harness.do(Resume("r1", "ann"))
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert await leader.claim() == []
        await harness.do(Discard("run:r1", "ann", "give up"))
        await leader.start("r2")

    @store_test
    async def test_a_redriven_dead_letter_holds_the_lane_until_its_run_is_resumed(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "block")
        await harness.settle("r1", await leader.start("r1"), "failed")
        assert await harness.do(MarkRedriven("run:r1", "ann")) is True
        assert await leader.claim() == []
        await harness.do(Resume("r1", "ann"))
        await leader.start("r1")

    @store_test
    async def test_a_block_outlives_the_leader(self, harness: StoreHarness) -> None:
        leader = await three_in_line(harness, "block")
        await harness.settle("r1", await leader.start("r1"), "failed")
        harness.clock.advance(10_000.0)
        other = await harness.lead(by=OTHER)
        assert await other.claim() == []

    @store_test
    async def test_a_lane_does_not_wait_for_what_failed_before_policy_block(
        self, harness: StoreHarness
    ) -> None:
        leader = await three_in_line(harness, "dead-letter")
        await harness.settle("r1", await leader.start("r1"), "failed")
        await harness.do(DefineLane("line", "fifo", "block"))
        await leader.start("r2")

    @store_test
    async def test_leading_and_claiming_in_one_batch(self, harness: StoreHarness) -> None:
        leader = await harness.fifo()
        await harness.submit("r1", lane="line")
        acquired, claimed, none_claimed = await harness.apply(
            Acquire("lane:line", "t1", "owner of t1", TTL),
            leader.claim_command(),
            leader.claim_command(),
        )
        assert acquired == Acquired(leader.term)
        assert [claim.run for claim in claimed] == ["r1"]
        assert none_claimed == []
