"""What was under way goes on in the new place: queues, lanes, delays, keys, epochs, the outbox,
retention."""

from __future__ import annotations

from holdfast.model.commands import (
    Acquire,
    Acquired,
    Bury,
    LimitTenant,
    PauseRun,
    Prune,
    PutRecord,
    Quarantine,
    Resume,
    Submitted,
)
from holdfast.model.replies import Changed, Stored
from holdfast.ports.mover import KINDS
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.mover_topics.filling import fill
from holdfast.testing.contracts.mover_topics.stage import MoverTopics, Stage, all_of, move, story
from holdfast.testing.contracts.store_topics.scene import a_checkpoint


class AfterwardsTopics(MoverTopics):
    @story
    async def test_a_running_run_arrives_in_the_queue_as_when_its_worker_vanished(
        self, stage: Stage
    ) -> None:
        epoch = await stage.scene.start("r1")
        await stage.scene.do(a_checkpoint("r1", epoch, "s"))
        target = await stage.moved()
        assert await target.last_event("r1") == ("run.worker_lost", {"attempt": 1})
        [claimed] = await target.claim()
        assert (claimed.run, claimed.attempt, claimed.resumed) == ("r1", 2, True)
        assert claimed.epoch > epoch
        assert [found.step for found in await target.store.checkpoints("r1")] == ["s"]

    @story
    async def test_a_running_run_whose_attempts_are_used_up_arrives_failed(
        self, stage: Stage
    ) -> None:
        await stage.scene.start("r1", max_attempts=1)
        target = await stage.moved()
        assert await target.state("r1") == "failed"
        assert "WorkerLost" in (await target.dead_letter("r1")).reason

    @story
    async def test_the_order_of_a_parallel_lane_is_kept(self, stage: Stage) -> None:
        for number in range(9):
            await stage.scene.submit(
                f"r{number}", priority=number % 3, pipeline=("report", "solo")[number % 2]
            )
        target = await stage.moved()
        await target.submit("new", priority=2)
        claimed = [found.run for found in await target.claim(20)]
        assert claimed == ["r2", "r5", "r8", "new", "r1", "r4", "r7", "r0", "r3", "r6"]

    @story
    async def test_the_order_of_a_fifo_lane_is_kept_through_a_retry(self, stage: Stage) -> None:
        line = await stage.scene.fifo()
        for name in ("a", "b", "c"):
            await stage.scene.submit(name, lane="line")
        await stage.scene.settle("a", await line.start("a"), "retry", delay=10.0)
        target = await stage.moved()
        line = await target.lead("line", by="t9")
        assert await line.claim() == []
        target.clock.advance(10.0)
        for name in ("a", "b", "c"):
            await target.settle(name, await line.start(name), "succeeded")

    @story
    async def test_a_blocked_lane_stays_blocked_until_its_head_is_resumed(
        self, stage: Stage
    ) -> None:
        line = await stage.scene.fifo(head="block")
        await stage.scene.submit("a", lane="line")
        await stage.scene.submit("b", lane="line")
        await stage.scene.settle("a", await line.start("a"), "failed")
        target = await stage.moved()
        line = await target.lead("line", by="t9")
        assert await line.claim() == []
        assert await target.do(Resume("a", "ann")) is None
        await line.start("a")

    @story
    async def test_a_delay_goes_on(self, stage: Stage) -> None:
        await stage.scene.submit("r1", delay=60.0)
        stage.clock.advance(20.0)
        target = await stage.moved()
        target.clock.advance(39.0)
        assert await target.claim() == []
        target.clock.advance(1.0)
        await target.restart("r1")

    @story
    async def test_keys_and_unique_slots_are_taken(self, stage: Stage) -> None:
        await stage.scene.settle("r1", await stage.scene.start("r1", key="k"), "succeeded")
        await stage.scene.submit("r2", unique=True, pipeline="solo")
        target = await stage.moved()
        assert await target.submit("r3", key="k") == Submitted("r1", False, "succeeded")
        assert (await target.submit("r4", key="k", fingerprint="other")).conflict
        assert await target.submit("r5", unique=True, pipeline="solo") == Submitted(
            "r2", False, "queued"
        )
        await target.do(PauseRun("r2", "ann"))
        assert await target.submit("r6", unique=True, pipeline="solo") == Submitted(
            "r2", False, "paused"
        )

    @story
    async def test_failures_of_checkpoints_are_counted_on(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        for key in ("a", "b"):
            await stage.scene.apply(
                a_checkpoint("r1", epoch, "s", key), Quarantine("r1", epoch, "s", key, "bad")
            )
        target = await stage.moved()
        epoch = await target.restart("r1")
        await target.do(a_checkpoint("r1", epoch, "s", "c"))
        assert await target.do(Quarantine("r1", epoch, "s", "c", "bad")) == 3

    @story
    async def test_the_epochs_of_locks_go_on(self, stage: Stage) -> None:
        held = await stage.scene.do(Acquire("own", "t1", "me", 5.0))
        stage.clock.advance(5.0)
        held = await stage.scene.do(Acquire("own", "t2", "me", 5.0))
        target = await stage.moved()
        again = await target.do(Acquire("own", "t3", "me", 5.0))
        assert isinstance(again, Acquired)
        assert again.epoch > held.epoch

    @story
    async def test_the_outbox_goes_on_behind_every_position(self, stage: Stage) -> None:
        await stage.scene.submit("r1")
        await stage.scene.submit("r2")
        await stage.scene.do(Bury("m1", "jobs", "not JSON", b"x", {}, "acme"))
        await stage.scene.settle("r1", await stage.scene.restart("r1"), "succeeded")
        events = await stage.scene.store.outbox(0)
        target = await stage.moved()
        assert await target.store.outbox(0) == events
        assert await target.store.outbox(events[1].position) == events[2:]
        await target.submit("r3")
        new = await target.store.outbox(events[-1].position)
        assert [event.id for event in new] == ["r3:1"]

    @story
    async def test_records_go_on_with_their_versions_and_expire(self, stage: Stage) -> None:
        put = PutRecord("a", "1", "v1")
        await stage.scene.apply(put, PutRecord("b", "1", "v2", ttl=60.0))
        stage.clock.advance(20.0)
        target = await stage.moved()
        page = await target.store.records("")
        assert [(r.key, r.value, r.version) for r in page.records] == [
            ("a", "1", "v1"),
            ("b", "1", "v2"),
        ]
        assert page.records[0].updated == stage.clock.now() - 20.0
        assert await target.do(PutRecord("a", "2", "v3", "v0")) == Changed("v1")
        assert isinstance(await target.do(PutRecord("a", "2", "v3", "v1")), Stored)
        stage.clock.advance(40.0)
        assert [r.key for r in (await target.store.records("")).records] == ["a"]

    @story
    async def test_labels_and_limits_arrive(self, stage: Stage) -> None:
        await stage.scene.do(LimitTenant("acme", 1, "ann"))
        for name in ("r1", "r2"):
            await stage.scene.submit(name, labels={"user_id": name})
        target = await stage.moved()
        found = await target.store.runs(RunFilter(tenant="acme", labels={"user_id": "r2"}))
        assert [run.id for run in found] == ["r2"]
        assert [run.run for run in await target.claim(limit=9)] == ["r1"]

    @story
    async def test_new_runs_are_accepted_behind_all_others(self, stage: Stage) -> None:
        """However many events came before the last run was accepted: there are more of them than
        runs."""
        for name in ("r1", "r2", "r3"):
            await stage.scene.settle(name, await stage.scene.start(name), "succeeded")
        target = await stage.moved()
        for name in ("r4", "r5"):
            assert await target.submit(name, key=f"k-{name}") == Submitted(name, True, "queued")
        assert [run.id for run in await target.store.runs(RunFilter())] == [
            "r5",
            "r4",
            "r3",
            "r2",
            "r1",
        ]
        assert [claimed.run for claimed in await target.claim(limit=5)] == ["r4", "r5"]

    @story
    async def test_numbers_go_on_after_everything_was_pruned(self, stage: Stage) -> None:
        await stage.scene.settle("r1", await stage.scene.start("r1"), "succeeded")
        events = await stage.scene.store.outbox(0)
        seq = (await stage.scene.run("r1")).seq
        stage.clock.advance(10.0)
        await stage.scene.do(Prune(0.0, 0.0))
        target = await stage.moved()
        await target.submit("r2")
        assert (await target.run("r2")).seq > seq
        new = await target.store.outbox(events[-1].position)
        assert [event.id for event in new] == ["r2:1"]

    @story
    async def test_retention_goes_on(self, stage: Stage) -> None:
        for name in ("r1", "r2", "r3"):
            await stage.scene.submit(name)
        for name in ("r1", "r2", "r3"):
            epoch = await stage.scene.restart(name)
            stage.clock.advance(10.0)
            await stage.scene.settle(name, epoch, "failed" if name == "r2" else "succeeded")
        target = await stage.moved()
        target.clock.advance(95.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r1", "acme")]
        target.clock.advance(10.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r3", "acme")]
        target.clock.advance(200.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r2", "acme")]
        assert await target.store.dead_letters(open_only=False) == []

    @story
    async def test_what_was_moved_can_be_moved_again(self, stage: Stage) -> None:
        await fill(stage.scene)
        await move(stage.source, stage.target)
        third = await stage.mover(self.make_place())
        await move(stage.target, third)
        for kind in KINDS:
            there, here = [await all_of(mover, kind) for mover in (stage.source, third)]
            assert there == here
