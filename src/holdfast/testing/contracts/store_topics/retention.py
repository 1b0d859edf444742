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
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_checkpoint, story

DAY = 86_400.0


async def pruned(scene: Scene, limit: int = 500, sent: int | None = None) -> list[str]:
    command = Prune(keep=DAY, keep_failed=10 * DAY, limit=limit, sent=sent)
    return [run for run, _ in await scene.do(command)]


class RetentionTopics(StoreTopics):
    @story
    async def test_finished_runs_are_deleted_with_all_that_belongs_to_them(
        self, scene: Scene
    ) -> None:
        epoch = await scene.start("r1", key="k1")
        await scene.apply(
            a_checkpoint("r1", epoch, "s"),
            a_checkpoint("r1", epoch, "t"),
            Quarantine("r1", epoch, "s", "", "bad"),
            LogLine("r1", epoch, "info", "s", "hello"),
        )
        await scene.settle("r1", epoch, "succeeded", result="1")
        scene.clock.advance(DAY)
        assert await pruned(scene) == ["r1"]
        assert await scene.everything("r1") == (None, [], [], [], [], None)
        assert await scene.store.outbox(0) == []
        assert await pruned(scene) == []

    @story
    async def test_a_run_stays_until_keep_has_passed(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1"), "succeeded")
        await scene.submit("r2")
        await scene.do(Cancel("r2", "ann"))
        scene.clock.advance(DAY - 1.0)
        assert await pruned(scene) == []
        scene.clock.advance(1.0)
        assert sorted(await pruned(scene)) == ["r1", "r2"]

    @story
    async def test_pruning_tells_whose_runs_it_deleted(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1", tenant="bolt"), "succeeded")
        scene.clock.advance(DAY)
        assert await scene.do(Prune(keep=DAY, keep_failed=DAY)) == [("r1", "bolt")]

    @story
    async def test_live_runs_are_never_deleted(self, scene: Scene) -> None:
        await scene.start("running")
        await scene.submit("queued")
        await scene.submit("paused")
        await scene.do(PauseRun("paused", "ann"))
        scene.clock.advance(1000 * DAY)
        assert await pruned(scene) == []

    @story
    async def test_failed_runs_stay_longer(self, scene: Scene) -> None:
        await scene.fail("r1")
        scene.clock.advance(10 * DAY - 1.0)
        assert await pruned(scene) == []
        scene.clock.advance(1.0)
        assert await pruned(scene) == ["r1"]
        assert await scene.store.dead_letters(open_only=False) == []

    @story
    async def test_a_failed_run_stays_as_long_after_its_dead_letter_was_closed(
        self, scene: Scene
    ) -> None:
        await scene.fail("r1")
        await scene.do(Discard("run:r1", "ann", "known"))
        scene.clock.advance(2 * DAY)
        assert await pruned(scene) == []

    @story
    async def test_pruning_deletes_no_more_than_its_limit(self, scene: Scene) -> None:
        for number in range(3):
            scene.clock.advance(1.0)
            await scene.settle(f"r{number}", await scene.start(f"r{number}"), "succeeded")
        scene.clock.advance(DAY)
        assert await pruned(scene, limit=2) == ["r0", "r1"]
        assert await pruned(scene, limit=2) == ["r2"]

    @story
    async def test_a_run_whose_events_are_yet_to_be_sent_stays(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1"), "succeeded")
        await scene.fail("r2")
        events = await scene.store.outbox(0)
        scene.clock.advance(10 * DAY)
        assert await pruned(scene, sent=0) == []
        last = [event.position for event in events if event.run == "r1"][-1]
        assert await pruned(scene, sent=last - 1) == []
        assert await pruned(scene, sent=last) == ["r1"]
        assert await pruned(scene, sent=events[-1].position) == ["r2"]

    @story
    async def test_a_key_is_free_again_when_its_run_is_gone(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1", key="k1"), "succeeded")
        scene.clock.advance(DAY)
        await pruned(scene)
        assert await scene.submit("r2", key="k1", fingerprint="f2") == Submitted(
            "r2", True, "queued"
        )

    @story
    async def test_neighbours_survive(self, scene: Scene) -> None:
        epoch = await scene.start("r2")
        await scene.do(a_checkpoint("r2", epoch))
        await scene.settle("r1", await scene.start("r1"), "succeeded")
        before = await scene.everything("r2")
        scene.clock.advance(DAY)
        assert await pruned(scene) == ["r1"]
        assert await scene.everything("r2") == before

    @story
    async def test_a_position_is_never_given_out_twice(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1"), "succeeded")
        last = (await scene.store.outbox(0))[-1].position
        seq = (await scene.run("r1")).seq
        scene.clock.advance(DAY)
        await pruned(scene)
        await scene.submit("r2")
        assert (await scene.store.outbox(0))[0].position > last
        assert (await scene.run("r2")).seq > seq

    @story
    async def test_a_run_that_holds_its_lane_stays(self, scene: Scene) -> None:
        """Deleting it would let the lane go on, and only a resume or a discard may do that."""
        leader = await scene.fifo(head="block")
        await scene.submit("r1", lane="line")
        await scene.submit("r2", lane="line")
        await scene.settle("r1", await leader.start("r1"), "failed")
        scene.clock.advance(100 * DAY)
        assert await pruned(scene) == []
        await scene.do(Discard("run:r1", "ann", "known"))
        assert await pruned(scene) == ["r1"]
        leader = await scene.lead(by="t2")
        await leader.start("r2")
