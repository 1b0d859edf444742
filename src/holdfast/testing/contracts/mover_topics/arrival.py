"""What is moved is all there, in its order, and once."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.model.commands import Acquire, Acquired
from holdfast.ports.mover import KINDS, AuditRecord, LockEpoch, RunRecord
from holdfast.testing.contracts.mover_topics.filling import fill
from holdfast.testing.contracts.mover_topics.stage import (
    ARRIVING,
    LEAVING,
    MoverTopics,
    Stage,
    all_of,
    everything,
    move,
    story,
)
from holdfast.testing.contracts.store_topics.scene import TTL, a_checkpoint


class ArrivalTopics(MoverTopics):
    @story
    async def test_everything_arrives_as_it_was(self, stage: Stage) -> None:
        await fill(stage.scene)
        stage.clock.advance(TTL)
        await stage.source.hold(LEAVING)
        before = await everything(stage.scene.store)
        target = await stage.moved()
        assert await everything(target.store) == before
        await target.check_histories()

    @story
    async def test_records_are_the_same_on_both_sides(self, stage: Stage) -> None:
        await fill(stage.scene)
        await move(stage.source, stage.target)
        for kind in KINDS:
            there, here = [await all_of(mover, kind) for mover in (stage.source, stage.target)]
            assert there == here

    @story
    async def test_pages_follow_one_another_without_gap_or_overlap(self, stage: Stage) -> None:
        await fill(stage.scene)
        for kind in KINDS:
            whole = (await stage.source.export(kind, None, 1000)).records
            pages: list[Any] = []
            after: str | None = None
            while True:
                page = await stage.source.export(kind, after, 2)
                assert len(page.records) <= 2
                pages += page.records
                if (after := page.after) is None:
                    break
            assert [str(each) for each in pages] == [str(each) for each in whole]

    @story
    async def test_the_cursor_of_runs_is_the_id_of_the_last_one(self, stage: Stage) -> None:
        for number in range(4):
            await stage.scene.submit(f"r{number}")
        found: list[RunRecord] = (await stage.source.export("runs", "r1", 10)).records
        assert [record.run.id for record in found] == ["r2", "r3"]
        assert (await stage.source.export("runs", None, 2)).after == "r1"
        assert (await stage.source.standing()).last_run == "r3"

    @story
    async def test_an_empty_store_can_be_moved(self, stage: Stage) -> None:
        target = await stage.moved()
        await target.settle("r1", await target.start("r1"), "succeeded")
        assert await target.state("r1") == "succeeded"

    @story
    async def test_adopting_again_changes_nothing(self, stage: Stage) -> None:
        await fill(stage.scene)
        await move(stage.source, stage.target)
        before = {kind: await all_of(stage.target, kind) for kind in KINDS}
        await stage.target.hold(ARRIVING)
        for kind in KINDS:
            await stage.target.adopt(kind, await all_of(stage.source, kind))
        await stage.target.go_on_from((await stage.source.standing()).numbers)
        await stage.target.release()
        assert {kind: await all_of(stage.target, kind) for kind in KINDS} == before
        unsent = await (await stage.open_target()).store.outbox(0, 1000)
        assert len(unsent) == len({event.id for event in unsent})

    @story
    async def test_a_run_with_very_many_results_arrives(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        for step in range(0, 5000, 500):
            await stage.scene.apply(
                *[
                    a_checkpoint("r1", epoch, "s", f"i{number:04}")
                    for number in range(step, step + 500)
                ]
            )
        target = await stage.moved()
        assert len(await target.store.checkpoints("r1")) == 5000

    @story
    async def test_of_a_lock_the_higher_epoch_counts(self, stage: Stage) -> None:
        await stage.target.hold(ARRIVING)
        for epoch in (5, 3):
            await stage.target.adopt("locks", [LockEpoch("own", epoch)])
        await stage.target.release()
        target = await stage.open_target()
        assert await target.do(Acquire("own", "t1", "me", 5.0)) == Acquired(6)

    @story
    async def test_an_audit_entry_is_adopted_once(self, stage: Stage) -> None:
        entry = AuditRecord(1, 1_700_000_000.0, "ann", "run.cancel", "r1", "")
        await stage.target.hold(ARRIVING)
        await stage.target.adopt("audit", [entry])
        await stage.target.adopt("audit", [entry, replace(entry, number=2, actor="bob")])
        await stage.target.release()
        assert [found.actor for found in await (await stage.open_target()).store.audit()] == [
            "bob",
            "ann",
        ]
