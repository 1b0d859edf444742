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
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Leader,
    Scene,
    StoreTopics,
    a_claim,
    story,
)

OTHER = "t2"


async def three_in_line(scene: Scene, head: str = "dead-letter", **fields: Any) -> Leader:
    leader = await scene.fifo(head=head)
    for run in ("r1", "r2", "r3"):
        await scene.submit(run, lane="line", **fields)
    return leader


class LaneTopics(StoreTopics):
    # --- definition ---

    @story
    async def test_a_lanes_order_never_changes_but_its_head_policy_does(self, scene: Scene) -> None:
        assert await scene.do(DefineLane("line", "fifo", "block")) == "fifo"
        assert await scene.do(DefineLane("line", "parallel", "skip")) == "fifo"
        assert await scene.store.lanes() == [LaneInfo("line", "fifo", "skip", 0, 0)]

    @story
    async def test_lanes_show_what_is_in_them(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await leader.start("r1")
        await scene.submit("p1", lane="apart")
        assert await scene.store.lanes() == [
            LaneInfo("apart", "parallel", "dead-letter", 1, 0),
            LaneInfo("line", "fifo", "dead-letter", 2, 1, "owner of t1", leader.term, None),
        ]

    @story
    async def test_a_lane_that_nobody_defined_shows_what_waits_in_it(self, scene: Scene) -> None:
        await scene.submit("r1", lane="apart", delay=60.0)
        assert await scene.store.lanes() == [LaneInfo("apart", "parallel", "dead-letter", 1, 0)]
        await scene.do(Cancel("r1", "ann"))
        assert await scene.store.lanes() == []

    # --- the leader ---

    @story
    async def test_only_the_leader_claims(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        assert await scene.claim(lane="line") == []
        assert await leader.claim(token=OTHER) == []
        assert await leader.claim(term=leader.term + 1) == []
        assert await leader.claim(term=leader.term - 1) == []
        assert await leader.claim(token=None, term=0) == []
        await leader.start("r1")

    @story
    async def test_nobody_claims_from_a_lane_that_was_never_led(self, scene: Scene) -> None:
        await scene.do(DefineLane("line", "fifo", "block"))
        await scene.submit("r1", lane="line")
        assert await scene.do(a_claim(lane="line")) == []
        assert await scene.do(a_claim(lane="line", token=OTHER, term=1)) == []

    @story
    async def test_a_leader_whose_term_ended_claims_nothing(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        scene.clock.advance(10_000.0)
        assert await leader.claim() == []

    @story
    async def test_a_leader_deposed_by_force_claims_nothing(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await scene.do(ForceRelease("lane:line", "ann", "stuck"))
        assert await leader.claim() == []
        again = await scene.lead()
        assert again.term > leader.term
        assert await leader.claim() == []
        await again.start("r1")

    @story
    async def test_a_leader_that_resigned_claims_nothing(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        assert await scene.do(ReleaseLock("lane:line", "t1")) is True
        assert await leader.claim() == []

    @story
    async def test_the_order_survives_a_change_of_leader(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await scene.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r2")
        scene.clock.advance(10_000.0)
        other = await scene.lead(by=OTHER)
        assert other.term == leader.term + 1
        # The dead leader's run is still marked running: nothing may pass it before it is swept.
        assert await other.claim() == []
        assert await scene.do(Sweep()) == [("r2", "queued")]
        await scene.settle("r2", await other.start("r2"), "succeeded")
        await other.start("r3")

    # --- one at a time, in order ---

    @story
    async def test_one_run_at_a_time_in_the_order_of_acceptance(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        for run in ("r1", "r2", "r3"):
            epoch = await leader.start(run)
            assert await leader.claim() == []
            await scene.settle(run, epoch, "succeeded")
        assert await leader.claim() == []

    @story
    async def test_priorities_do_not_count_in_a_fifo_lane(self, scene: Scene) -> None:
        leader = await scene.fifo()
        await scene.submit("r1", lane="line", priority=0)
        await scene.submit("r2", lane="line", priority=9)
        await leader.start("r1")

    @story
    async def test_a_limit_of_nothing_claims_nothing(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        assert await leader.claim(limit=0) == []

    @story
    async def test_a_head_larger_than_max_bytes_is_claimed(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        assert [found.run for found in await leader.claim(max_bytes=1)] == ["r1"]

    @story
    async def test_a_retry_keeps_its_place_at_the_head(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await scene.settle("r1", await leader.start("r1"), "retry", delay=5.0)
        assert await leader.claim() == []
        scene.clock.advance(5.0)
        await leader.start("r1")

    @story
    async def test_a_delayed_head_is_waited_for(self, scene: Scene) -> None:
        leader = await scene.fifo()
        await scene.submit("r1", lane="line", delay=60.0)
        await scene.submit("r2", lane="line")
        assert await leader.claim() == []
        scene.clock.advance(60.0)
        await leader.start("r1")

    @story
    async def test_a_head_of_another_pipeline_is_not_passed(self, scene: Scene) -> None:
        leader = await scene.fifo()
        await scene.submit("r1", lane="line", pipeline="other")
        await scene.submit("r2", lane="line", pipeline="report")
        assert await leader.claim(pipelines=["report"]) == []
        assert [found.run for found in await leader.claim(pipelines=["other"])] == ["r1"]

    @story
    async def test_a_hand_over_keeps_its_place(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await scene.settle("r1", await leader.start("r1"), "handover")
        await leader.start("r1")

    @story
    async def test_a_vanished_workers_run_keeps_its_place(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await leader.start("r1")
        scene.clock.advance(TTL)
        # Its lease has ended, but until the sweep has said so nothing is claimed.
        assert await leader.claim() == []
        await scene.do(Sweep())
        await leader.start("r1")

    @story
    async def test_a_paused_head_lets_the_lane_go_on_and_gets_its_place_back(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene)
        await scene.do(PauseRun("r1", "ann"))
        await scene.settle("r2", await leader.start("r2"), "succeeded")
        await scene.do(Resume("r1", "ann"))
        await scene.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r3")

    @story
    async def test_a_cancelled_head_lets_the_lane_go_on(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        await leader.start("r1")
        await scene.do(Cancel("r1", "ann"))
        await leader.start("r2")

    @story
    async def test_lanes_do_not_hold_one_another_up(self, scene: Scene) -> None:
        leader = await three_in_line(scene)
        other = await scene.fifo("second")
        await scene.submit("s1", lane="second")
        await leader.start("r1")
        await other.start("s1")

    # --- a failed head ---

    @story
    async def test_policy_dead_letter_keeps_the_failed_run_and_goes_on(self, scene: Scene) -> None:
        leader = await three_in_line(scene, "dead-letter")
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert [letter.id for letter in await scene.store.dead_letters()] == ["run:r1"]
        await leader.start("r2")

    @story
    async def test_policy_skip_goes_on_without_a_dead_letter(self, scene: Scene) -> None:
        leader = await three_in_line(scene, "skip")
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert await scene.state("r1") == "failed"
        assert await scene.store.dead_letters(open_only=False) == []
        await leader.start("r2")

    @story
    async def test_policy_skip_leaves_no_dead_letter_of_vanished_workers_either(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene, "skip", max_attempts=1)
        await leader.start("r1")
        assert await scene.lose_worker() == [("r1", "failed")]
        assert await scene.store.dead_letters(open_only=False) == []
        await leader.start("r2")

    @story
    async def test_head_policies_are_for_fifo_lanes_only(self, scene: Scene) -> None:
        for head in ("skip", "block"):
            await scene.do(DefineLane(head, "parallel", head))
            await scene.fail(f"{head}1", lane=head)
            assert (await scene.dead_letter(f"{head}1")).closed is None
            await scene.start(f"{head}2", lane=head)

    @story
    async def test_policy_block_waits_until_the_run_is_resumed(self, scene: Scene) -> None:
        leader = await three_in_line(scene, "block")
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert await leader.claim() == []
        assert [lane.blocked_by for lane in await scene.store.lanes()] == ["r1"]
        await scene.do(Resume("r1", "ann"))
        assert [lane.blocked_by for lane in await scene.store.lanes()] == [None]
        await scene.settle("r1", await leader.start("r1"), "succeeded")
        await leader.start("r2")

    @story
    async def test_policy_block_waits_until_the_dead_letter_is_discarded(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene, "block")
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert await scene.do(Discard("run:r1", "ann", "known")) is True
        assert [lane.blocked_by for lane in await scene.store.lanes()] == [None]
        await leader.start("r2")

    @story
    async def test_policy_block_holds_when_every_worker_vanished(self, scene: Scene) -> None:
        leader = await three_in_line(scene, "block", max_attempts=1)
        await leader.start("r1")
        assert await scene.lose_worker() == [("r1", "failed")]
        assert await leader.claim() == []

    @story
    async def test_policy_block_holds_again_when_the_resumed_run_fails_again(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene, "block")
        await scene.settle("r1", await leader.start("r1"), "failed")
        await scene.do(Resume("r1", "ann"))
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert await leader.claim() == []
        await scene.do(Discard("run:r1", "ann", "give up"))
        await leader.start("r2")

    @story
    async def test_a_redriven_dead_letter_holds_the_lane_until_its_run_is_resumed(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene, "block")
        await scene.settle("r1", await leader.start("r1"), "failed")
        assert await scene.do(MarkRedriven("run:r1", "ann")) is True
        assert await leader.claim() == []
        await scene.do(Resume("r1", "ann"))
        await leader.start("r1")

    @story
    async def test_a_block_outlives_the_leader(self, scene: Scene) -> None:
        leader = await three_in_line(scene, "block")
        await scene.settle("r1", await leader.start("r1"), "failed")
        scene.clock.advance(10_000.0)
        other = await scene.lead(by=OTHER)
        assert await other.claim() == []

    @story
    async def test_a_lane_does_not_wait_for_what_failed_before_policy_block(
        self, scene: Scene
    ) -> None:
        leader = await three_in_line(scene, "dead-letter")
        await scene.settle("r1", await leader.start("r1"), "failed")
        await scene.do(DefineLane("line", "fifo", "block"))
        await leader.start("r2")

    @story
    async def test_leading_and_claiming_in_one_batch(self, scene: Scene) -> None:
        leader = await scene.fifo()
        await scene.submit("r1", lane="line")
        acquired, claimed, nothing = await scene.apply(
            Acquire("lane:line", "t1", "owner of t1", TTL),
            leader.claim_command(),
            leader.claim_command(),
        )
        assert acquired == Acquired(leader.term)
        assert [found.run for found in claimed] == ["r1"]
        assert nothing == []
