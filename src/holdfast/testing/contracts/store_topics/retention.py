"""Retention: what is deleted, when, and what must stay."""

from __future__ import annotations

from holdfast.model.commands import (
    Cancel,
    Discard,
    LogLine,
    PauseRun,
    Prune,
    Quarantine,
    Submitted,
)
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    store_test,
)

DAY = 86_400.0


async def pruned(harness: StoreHarness, limit: int = 500, sent: int | None = None) -> list[str]:
    command = Prune(keep=DAY, keep_failed=10 * DAY, limit=limit, sent=sent)
    return [run for run, _ in await harness.do(command)]


class RetentionTopics(StoreTopics):
    @store_test
    async def test_finished_runs_are_deleted_with_all_that_belongs_to_them(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", key="k1")
        await harness.apply(
            a_checkpoint("r1", epoch, "s"),
            a_checkpoint("r1", epoch, "t"),
            Quarantine("r1", epoch, "s", "", "bad"),
            LogLine("r1", epoch, "info", "s", "hello"),
        )
        await harness.settle("r1", epoch, "succeeded", result="1")
        harness.clock.advance(DAY)
        assert await pruned(harness) == ["r1"]
        assert await harness.everything("r1") == (None, [], [], [], [], None)
        assert await harness.store.outbox(0) == []
        assert await pruned(harness) == []

    @store_test
    async def test_a_run_stays_until_keep_has_passed(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1"), "succeeded")
        await harness.submit("r2")
        await harness.do(Cancel("r2", "ann"))
        harness.clock.advance(DAY - 1.0)
        assert await pruned(harness) == []
        harness.clock.advance(1.0)
        assert sorted(await pruned(harness)) == ["r1", "r2"]

    @store_test
    async def test_pruning_tells_whose_runs_it_deleted(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1", tenant="bolt"), "succeeded")
        harness.clock.advance(DAY)
        assert await harness.do(Prune(keep=DAY, keep_failed=DAY)) == [("r1", "bolt")]

    @store_test
    async def test_live_runs_are_never_deleted(self, harness: StoreHarness) -> None:
        await harness.start("running")
        await harness.submit("queued")
        await harness.submit("paused")
        await harness.do(PauseRun("paused", "ann"))
        harness.clock.advance(1000 * DAY)
        assert await pruned(harness) == []

    @store_test
    async def test_failed_runs_stay_longer(self, harness: StoreHarness) -> None:
        await harness.fail("r1")
        harness.clock.advance(10 * DAY - 1.0)
        assert await pruned(harness) == []
        harness.clock.advance(1.0)
        assert await pruned(harness) == ["r1"]
        assert await harness.store.dead_letters(open_only=False) == []

    @store_test
    async def test_a_failed_run_stays_as_long_after_its_dead_letter_was_closed(
        self, harness: StoreHarness
    ) -> None:
        await harness.fail("r1")
        await harness.do(Discard("run:r1", "ann", "known"))
        harness.clock.advance(2 * DAY)
        assert await pruned(harness) == []

    @store_test
    async def test_pruning_deletes_no_more_than_its_limit(self, harness: StoreHarness) -> None:
        for number in range(3):
            harness.clock.advance(1.0)
            await harness.settle(f"r{number}", await harness.start(f"r{number}"), "succeeded")
        harness.clock.advance(DAY)
        assert await pruned(harness, limit=2) == ["r0", "r1"]
        assert await pruned(harness, limit=2) == ["r2"]

    @store_test
    async def test_a_run_whose_events_are_yet_to_be_sent_stays(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1"), "succeeded")
        await harness.fail("r2")
        events = await harness.store.outbox(0)
        harness.clock.advance(10 * DAY)
        assert await pruned(harness, sent=0) == []
        last = [event.position for event in events if event.run == "r1"][-1]
        assert await pruned(harness, sent=last - 1) == []
        assert await pruned(harness, sent=last) == ["r1"]
        assert await pruned(harness, sent=events[-1].position) == ["r2"]

    @store_test
    async def test_a_key_is_free_again_when_its_run_is_gone(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1", key="k1"), "succeeded")
        harness.clock.advance(DAY)
        await pruned(harness)
        assert await harness.submit("r2", key="k1", fingerprint="f2") == Submitted(
            "r2", True, "queued"
        )

    @store_test
    async def test_neighbours_survive(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r2")
        await harness.do(a_checkpoint("r2", epoch))
        await harness.settle("r1", await harness.start("r1"), "succeeded")
        before = await harness.everything("r2")
        harness.clock.advance(DAY)
        assert await pruned(harness) == ["r1"]
        assert await harness.everything("r2") == before

    @store_test
    async def test_a_position_is_never_given_out_twice(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1"), "succeeded")
        last = (await harness.store.outbox(0))[-1].position
        seq = (await harness.run("r1")).seq
        harness.clock.advance(DAY)
        await pruned(harness)
        await harness.submit("r2")
        assert (await harness.store.outbox(0))[0].position > last
        assert (await harness.run("r2")).seq > seq

    @store_test
    async def test_a_run_that_holds_its_lane_stays(self, harness: StoreHarness) -> None:
        """Deleting it would let the lane go on, and only a resume or a discard may do that."""
        leader = await harness.fifo(head="block")
        await harness.submit("r1", lane="line")
        await harness.submit("r2", lane="line")
        await harness.settle("r1", await leader.start("r1"), "failed")
        harness.clock.advance(100 * DAY)
        assert await pruned(harness) == []
        await harness.do(Discard("run:r1", "ann", "known"))
        assert await pruned(harness) == ["r1"]
        leader = await harness.lead(by="t2")
        await leader.start("r2")
