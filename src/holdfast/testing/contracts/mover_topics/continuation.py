"""What was under way goes on in the target: queues, lanes, delays, keys, epochs, the outbox,
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
from holdfast.testing.contracts.mover_topics.harness import (
    MoverHarness,
    MoverTopics,
    all_of,
    move,
    mover_test,
)
from holdfast.testing.contracts.mover_topics.sample_data import fill
from holdfast.testing.contracts.store_topics.harness import a_checkpoint


class ContinuationTopics(MoverTopics):
    @mover_test
    async def test_a_running_run_arrives_in_the_queue_as_when_its_worker_vanished(
        self, harness: MoverHarness
    ) -> None:
        epoch = await harness.source_store.start("r1")
        await harness.source_store.do(a_checkpoint("r1", epoch, "s"))
        target = await harness.moved()
        assert await target.last_event("r1") == ("run.worker_lost", {"attempt": 1})
        [claimed] = await target.claim()
        assert (claimed.run, claimed.attempt, claimed.resumed) == ("r1", 2, True)
        assert claimed.epoch > epoch
        assert [checkpoint.step for checkpoint in await target.store.checkpoints("r1")] == ["s"]

    @mover_test
    async def test_a_running_run_whose_attempts_are_used_up_arrives_failed(
        self, harness: MoverHarness
    ) -> None:
        await harness.source_store.start("r1", max_attempts=1)
        target = await harness.moved()
        assert await target.state("r1") == "failed"
        assert "WorkerLost" in (await target.dead_letter("r1")).reason

    @mover_test
    async def test_the_order_of_a_parallel_lane_is_kept(self, harness: MoverHarness) -> None:
        for number in range(9):
            await harness.source_store.submit(
                f"r{number}", priority=number % 3, pipeline=("report", "solo")[number % 2]
            )
        target = await harness.moved()
        await target.submit("new", priority=2)
        claimed = [claim.run for claim in await target.claim(20)]
        assert claimed == ["r2", "r5", "r8", "new", "r1", "r4", "r7", "r0", "r3", "r6"]

    @mover_test
    async def test_the_order_of_a_fifo_lane_is_kept_through_a_retry(
        self, harness: MoverHarness
    ) -> None:
        line = await harness.source_store.fifo()
        for name in ("a", "b", "c"):
            await harness.source_store.submit(name, lane="line")
        await harness.source_store.settle("a", await line.start("a"), "retry", delay=10.0)
        target = await harness.moved()
        line = await target.lead("line", by="t9")
        assert await line.claim() == []
        target.clock.advance(10.0)
        for name in ("a", "b", "c"):
            await target.settle(name, await line.start(name), "succeeded")

    @mover_test
    async def test_a_blocked_lane_stays_blocked_until_its_head_is_resumed(
        self, harness: MoverHarness
    ) -> None:
        line = await harness.source_store.fifo(head="block")
        await harness.source_store.submit("a", lane="line")
        await harness.source_store.submit("b", lane="line")
        await harness.source_store.settle("a", await line.start("a"), "failed")
        target = await harness.moved()
        line = await target.lead("line", by="t9")
        assert await line.claim() == []
        assert await target.do(Resume("a", "ann")) is None
        await line.start("a")

    @mover_test
    async def test_a_delay_goes_on(self, harness: MoverHarness) -> None:
        await harness.source_store.submit("r1", delay=60.0)
        harness.clock.advance(20.0)
        target = await harness.moved()
        target.clock.advance(39.0)
        assert await target.claim() == []
        target.clock.advance(1.0)
        await target.restart("r1")

    @mover_test
    async def test_keys_and_unique_slots_are_taken(self, harness: MoverHarness) -> None:
        await harness.source_store.settle(
            "r1", await harness.source_store.start("r1", key="k"), "succeeded"
        )
        await harness.source_store.submit("r2", unique=True, pipeline="solo")
        target = await harness.moved()
        assert await target.submit("r3", key="k") == Submitted("r1", False, "succeeded")
        assert (await target.submit("r4", key="k", fingerprint="other")).conflict
        assert await target.submit("r5", unique=True, pipeline="solo") == Submitted(
            "r2", False, "queued"
        )
        await target.do(PauseRun("r2", "ann"))
        assert await target.submit("r6", unique=True, pipeline="solo") == Submitted(
            "r2", False, "paused"
        )

    @mover_test
    async def test_failures_of_checkpoints_are_counted_on(self, harness: MoverHarness) -> None:
        epoch = await harness.source_store.start("r1")
        for key in ("a", "b"):
            await harness.source_store.apply(
                a_checkpoint("r1", epoch, "s", key), Quarantine("r1", epoch, "s", key, "bad")
            )
        target = await harness.moved()
        epoch = await target.restart("r1")
        await target.do(a_checkpoint("r1", epoch, "s", "c"))
        assert await target.do(Quarantine("r1", epoch, "s", "c", "bad")) == 3

    @mover_test
    async def test_the_epochs_of_locks_go_on(self, harness: MoverHarness) -> None:
        lock = await harness.source_store.do(Acquire("own", "t1", "me", 5.0))
        harness.clock.advance(5.0)
        lock = await harness.source_store.do(Acquire("own", "t2", "me", 5.0))
        target = await harness.moved()
        again = await target.do(Acquire("own", "t3", "me", 5.0))
        assert isinstance(again, Acquired)
        assert again.epoch > lock.epoch

    @mover_test
    async def test_the_outbox_goes_on_behind_every_position(self, harness: MoverHarness) -> None:
        await harness.source_store.submit("r1")
        await harness.source_store.submit("r2")
        await harness.source_store.do(Bury("m1", "jobs", "not JSON", b"x", {}, "acme"))
        await harness.source_store.settle(
            "r1", await harness.source_store.restart("r1"), "succeeded"
        )
        events = await harness.source_store.store.outbox(0)
        target = await harness.moved()
        assert await target.store.outbox(0) == events
        assert await target.store.outbox(events[1].position) == events[2:]
        await target.submit("r3")
        new = await target.store.outbox(events[-1].position)
        assert [event.id for event in new] == ["r3:1"]

    @mover_test
    async def test_records_go_on_with_their_versions_and_expire(
        self, harness: MoverHarness
    ) -> None:
        put = PutRecord("a", "1", "v1")
        await harness.source_store.apply(put, PutRecord("b", "1", "v2", ttl=60.0))
        harness.clock.advance(20.0)
        target = await harness.moved()
        page = await target.store.records("")
        assert [(r.key, r.value, r.version) for r in page.records] == [
            ("a", "1", "v1"),
            ("b", "1", "v2"),
        ]
        assert page.records[0].updated == harness.clock.now() - 20.0
        assert await target.do(PutRecord("a", "2", "v3", "v0")) == Changed("v1")
        assert isinstance(await target.do(PutRecord("a", "2", "v3", "v1")), Stored)
        harness.clock.advance(40.0)
        assert [r.key for r in (await target.store.records("")).records] == ["a"]

    @mover_test
    async def test_labels_and_limits_arrive(self, harness: MoverHarness) -> None:
        await harness.source_store.do(LimitTenant("acme", 1, "ann"))
        for name in ("r1", "r2"):
            await harness.source_store.submit(name, labels={"user_id": name})
        target = await harness.moved()
        runs = await target.store.runs(RunFilter(tenant="acme", labels={"user_id": "r2"}))
        assert [run.id for run in runs] == ["r2"]
        assert [run.run for run in await target.claim(limit=9)] == ["r1"]

    @mover_test
    async def test_new_runs_are_accepted_behind_all_others(self, harness: MoverHarness) -> None:
        """However many events came before the last run was accepted: there are more of them than
        runs."""
        for name in ("r1", "r2", "r3"):
            await harness.source_store.settle(
                name, await harness.source_store.start(name), "succeeded"
            )
        target = await harness.moved()
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

    @mover_test
    async def test_numbers_go_on_after_everything_was_pruned(self, harness: MoverHarness) -> None:
        await harness.source_store.settle("r1", await harness.source_store.start("r1"), "succeeded")
        events = await harness.source_store.store.outbox(0)
        seq = (await harness.source_store.run("r1")).seq
        harness.clock.advance(10.0)
        await harness.source_store.do(Prune(0.0, 0.0))
        target = await harness.moved()
        await target.submit("r2")
        assert (await target.run("r2")).seq > seq
        new = await target.store.outbox(events[-1].position)
        assert [event.id for event in new] == ["r2:1"]

    @mover_test
    async def test_retention_goes_on(self, harness: MoverHarness) -> None:
        for name in ("r1", "r2", "r3"):
            await harness.source_store.submit(name)
        for name in ("r1", "r2", "r3"):
            epoch = await harness.source_store.restart(name)
            harness.clock.advance(10.0)
            await harness.source_store.settle(
                name, epoch, "failed" if name == "r2" else "succeeded"
            )
        target = await harness.moved()
        target.clock.advance(95.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r1", "acme")]
        target.clock.advance(10.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r3", "acme")]
        target.clock.advance(200.0)
        assert await target.do(Prune(keep=100.0, keep_failed=200.0)) == [("r2", "acme")]
        assert await target.store.dead_letters(open_only=False) == []

    @mover_test
    async def test_what_was_moved_can_be_moved_again(self, harness: MoverHarness) -> None:
        await fill(harness.source_store)
        await move(harness.source, harness.target)
        third = await harness.mover(self.make_location())
        await move(harness.target, third)
        for kind in KINDS:
            moved_out, moved_in = [await all_of(mover, kind) for mover in (harness.source, third)]
            assert moved_out == moved_in
