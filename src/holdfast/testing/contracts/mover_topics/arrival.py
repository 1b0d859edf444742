"""Everything that is moved arrives, in its order, and once."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.model.commands import Acquire, Acquired
from holdfast.ports.mover import KINDS, AuditRecord, LockEpoch, RunRecord
from holdfast.testing.contracts.mover_topics.harness import (
    ARRIVING,
    LEAVING,
    MoverHarness,
    MoverTopics,
    all_of,
    everything,
    move,
    mover_test,
)
from holdfast.testing.contracts.mover_topics.sample_data import fill
from holdfast.testing.contracts.store_topics.harness import TTL, a_checkpoint


class ArrivalTopics(MoverTopics):
    @mover_test
    async def test_everything_arrives_as_it_was(self, harness: MoverHarness) -> None:
        await fill(harness.source_store)
        harness.clock.advance(TTL)
        await harness.source.hold(LEAVING)
        before = await everything(harness.source_store.store)
        target = await harness.moved()
        assert await everything(target.store) == before
        await target.check_histories()

    @mover_test
    async def test_records_are_the_same_on_both_sides(self, harness: MoverHarness) -> None:
        await fill(harness.source_store)
        await move(harness.source, harness.target)
        for kind in KINDS:
            moved_out, moved_in = [
                await all_of(mover, kind) for mover in (harness.source, harness.target)
            ]
            assert moved_out == moved_in

    @mover_test
    async def test_pages_follow_one_another_without_gap_or_overlap(
        self, harness: MoverHarness
    ) -> None:
        await fill(harness.source_store)
        for kind in KINDS:
            records = (await harness.source.export(kind, None, 1000)).records
            pages: list[Any] = []
            after: str | None = None
            while True:
                page = await harness.source.export(kind, after, 2)
                assert len(page.records) <= 2
                pages += page.records
                if (after := page.after) is None:
                    break
            assert [str(record) for record in pages] == [str(record) for record in records]

    @mover_test
    async def test_the_cursor_of_runs_is_the_id_of_the_last_one(
        self, harness: MoverHarness
    ) -> None:
        for number in range(4):
            await harness.source_store.submit(f"r{number}")
        records: list[RunRecord] = (await harness.source.export("runs", "r1", 10)).records
        assert [record.run.id for record in records] == ["r2", "r3"]
        assert (await harness.source.export("runs", None, 2)).after == "r1"
        assert (await harness.source.move_state()).last_run == "r3"

    @mover_test
    async def test_an_empty_store_can_be_moved(self, harness: MoverHarness) -> None:
        target = await harness.moved()
        await target.settle("r1", await target.start("r1"), "succeeded")
        assert await target.state("r1") == "succeeded"

    @mover_test
    async def test_adopting_again_changes_nothing(self, harness: MoverHarness) -> None:
        await fill(harness.source_store)
        await move(harness.source, harness.target)
        before = {kind: await all_of(harness.target, kind) for kind in KINDS}
        await harness.target.hold(ARRIVING)
        for kind in KINDS:
            await harness.target.adopt(kind, await all_of(harness.source, kind))
        await harness.target.continue_from((await harness.source.move_state()).numbers)
        await harness.target.release()
        assert {kind: await all_of(harness.target, kind) for kind in KINDS} == before
        unsent = await (await harness.open_target()).store.outbox(0, 1000)
        assert len(unsent) == len({event.id for event in unsent})

    @mover_test
    async def test_a_run_with_very_many_results_arrives(self, harness: MoverHarness) -> None:
        epoch = await harness.source_store.start("r1")
        for step in range(0, 5000, 500):
            await harness.source_store.apply(
                *[
                    a_checkpoint("r1", epoch, "s", f"i{number:04}")
                    for number in range(step, step + 500)
                ]
            )
        target = await harness.moved()
        assert len(await target.store.checkpoints("r1")) == 5000

    @mover_test
    async def test_of_a_lock_the_higher_epoch_counts(self, harness: MoverHarness) -> None:
        await harness.target.hold(ARRIVING)
        for epoch in (5, 3):
            await harness.target.adopt("locks", [LockEpoch("own", epoch)])
        await harness.target.release()
        target = await harness.open_target()
        assert await target.do(Acquire("own", "t1", "me", 5.0)) == Acquired(6)

    @mover_test
    async def test_an_audit_entry_is_adopted_once(self, harness: MoverHarness) -> None:
        entry = AuditRecord(1, 1_700_000_000.0, "ann", "run.cancel", "r1", "")
        await harness.target.hold(ARRIVING)
        await harness.target.adopt("audit", [entry])
        await harness.target.adopt("audit", [entry, replace(entry, number=2, actor="bob")])
        await harness.target.release()
        assert [entry.actor for entry in await (await harness.open_target()).store.audit()] == [
            "bob",
            "ann",
        ]
