"""The contract of the `Mover` port: what is moved is all there, in its order, and nobody works on a held store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.checkpoint import Checkpoint
from holdfast.ports.commands import (
    Acquire,
    Acquired,
    Bury,
    Cancel,
    Command,
    ConfirmOutbox,
    DefineLane,
    Discard,
    ForceRelease,
    LogLine,
    MarkRedriven,
    PauseRun,
    Prune,
    Quarantine,
    ReadOutbox,
    Refused,
    Resume,
    SaveProgress,
    Submitted,
)
from holdfast.ports.mover import KINDS, AuditRecord, Kind, LockEpoch, Mark, Mover, Numbers, RunRecord
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Scene,
    a_checkpoint,
    a_submit,
    an_error,
)

LEAVING = Mark("leaving", "m1", "redis://elsewhere/0", 1_700_000_000.0)
MOVED = replace(LEAVING, state="moved")
ARRIVING = replace(LEAVING, state="arriving")


class Place(Protocol):
    """Where a store is: its store and its mover may be made any number of times, and find the same data."""

    def store(self, clock: ManualClock) -> Store: ...

    def mover(self, clock: ManualClock) -> Mover: ...


async def fill(scene: Scene) -> None:
    """Something of every kind."""
    await _finished(scene)
    await _failed(scene)
    await _waiting(scene)
    await _in_lanes(scene)
    await _others(scene)


async def _finished(scene: Scene) -> None:
    epoch = await scene.start("done", key="k1", priority=7, fingerprint="f-done", input='{"n":"naïve \\u0000"}')
    scene.clock.advance(0.123456)
    await scene.apply(
        a_checkpoint("done", epoch, "s", value='"ünï\\u0000"'),
        a_checkpoint("done", epoch, "s", "item-1"),
        a_checkpoint("done", epoch, "t", value="@blob:acme/done/t/1/x.json"),
        Quarantine("done", epoch, "s", "item-1", "bad"),
        LogLine("done", epoch, "info", "s", "hello", '{"a":1}'),
        LogLine("done", epoch, "warning", "", "again"),
    )
    last = a_checkpoint("done", epoch, "u", value='"r"')
    progress = '{"steps":{"s":{"step":"s","status":"completed","usage":{"input_tokens":3,"cost":0.25,"calls":1}}}}'
    await scene.settle("done", epoch, "succeeded", result='"r"', last=last, progress=progress)
    await scene.settle("plain", await scene.start("plain", tenant="bolt"), "succeeded", result="null")
    await scene.submit("gone", parent="done")
    await scene.do(Cancel("gone", "ann", "not needed"))


async def _failed(scene: Scene) -> None:
    await scene.fail("broken", key="k2", tenant="bolt")
    await scene.fail("known")
    await scene.do(Discard("run:known", "bob", "test data"))
    await scene.settle("again", await scene.start("again"), "failed", error=an_error("it broke"))
    await scene.do(Resume("again", "ann", 2))
    await scene.do(Cancel("again", "ann"))


async def _waiting(scene: Scene) -> None:
    await scene.submit("parked", unique=True, pipeline="solo")
    epoch = await scene.restart("parked")
    await scene.apply(a_checkpoint("parked", epoch, "s"), SaveProgress("parked", epoch, '{"wasted":{"calls":2}}'))
    await scene.do(PauseRun("parked", "ann", "over budget"))
    epoch = await scene.start("retried")
    await scene.do(a_checkpoint("retried", epoch, "s"))
    await scene.settle("retried", epoch, "retry", delay=100.0)
    await scene.submit("later", delay=50.0, priority=1)
    await scene.submit("rerun", lane="other", parent="done", checkpoints=[Checkpoint("s", "", "1", "c", "t", "f")])
    for number in range(3):
        await scene.submit(f"queued-{number}", priority=number % 2, input=f'"{number}"', lane="wide")


async def _in_lanes(scene: Scene) -> None:
    await scene.do(DefineLane("wide", "parallel", "skip"))
    line = await scene.fifo("line", "block")
    for name in ("l1", "l2", "l3"):
        await scene.submit(name, lane="line")
    await scene.settle("l1", await line.start("l1"), "failed")
    order = await scene.fifo("order")
    for name in ("o1", "o2", "o3"):
        await scene.submit(name, lane="order")
    epoch = await order.start("o1")
    await scene.do(a_checkpoint("o1", epoch, "s"))
    await scene.settle("o1", epoch, "retry", delay=5.0)
    await scene.do(ForceRelease("lane:line", "ann", "host is gone"))


async def _others(scene: Scene) -> None:
    await scene.do(Bury("m1", "jobs", "not JSON", bytes(range(256)), {"a": "b"}, "acme"))
    await scene.do(Bury("m2", "jobs", "not JSON", b"", {}, ""))
    await scene.do(MarkRedriven("m2", "bob"))
    await scene.do(Acquire("own", "t1", "me", 5.0))
    await scene.do(ForceRelease("own", "ann", "stuck"))
    await scene.do(Acquire("own", "t2", "me", 5.0))
    events = await scene.do(ReadOutbox(7))
    await scene.do(ConfirmOutbox(events[-1].position))


async def move(source: Mover, target: Mover, limit: int = 4) -> None:
    """All that one store holds to another, as the port says it is done."""
    await source.hold(LEAVING)
    await target.hold(replace(ARRIVING, sent=(await source.standing()).numbers.confirmed))
    for kind in KINDS:
        after: str | None = None
        while True:
            page = await source.export(kind, after, limit)
            await target.adopt(kind, numbered(page.records))
            if (after := page.after) is None:
                break
    await target.go_on_from((await source.standing()).numbers)
    await source.hold(MOVED)
    await target.release()


async def all_of(mover: Mover, kind: Kind) -> list[Any]:
    return numbered((await mover.export(kind, None, 1000)).records)


def numbered(records: list[Any]) -> list[Any]:
    """Runs with the positions of their first events as their numbers."""
    for record in records:
        if isinstance(record, RunRecord):
            record.run.seq = record.history[0].position
    return records


async def everything(store: Store) -> dict[str, Any]:
    """All that can be read of a store, by everybody."""
    found = await store.runs(RunFilter(), limit=10_000)
    return {
        "runs": [replace(run, seq=0) for run in found],
        "count": await store.count(RunFilter()),
        "history": [await store.history(run.id) for run in found],
        "checkpoints": [await store.checkpoints(run.id) for run in found],
        "quarantined": [await store.quarantined(run.id) for run in found],
        "logs": [await store.logs(run.id) for run in found],
        "letters": await store.dead_letters(open_only=False, limit=10_000),
        "open": await store.dead_letters(tenant="acme"),
        "lanes": await store.lanes(),
        "locks": await store.locks(),
        "audit": await store.audit(limit=10_000),
    }


class Stage:
    """A source and a target, each with its store, its mover, and one clock."""

    def __init__(self, make_place: Callable[[], Place]) -> None:
        self.clock = ManualClock()
        self._places = [make_place(), make_place()]
        self._open: list[Any] = []

    async def __aenter__(self) -> Stage:
        self.source, self.target = [await self.mover(place) for place in self._places]
        self.scene = await self.open_source()
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in reversed(self._open):
            await each.close()

    async def mover(self, place: Place) -> Mover:
        mover = place.mover(self.clock)
        await mover.open()
        self._open.append(mover)
        return mover

    async def open_source(self) -> Scene:
        return await self._scene(self._places[0])

    async def open_target(self) -> Scene:
        return await self._scene(self._places[1])

    async def _scene(self, place: Place) -> Scene:
        store = place.store(self.clock)
        await store.open()
        self._open.append(store)
        return Scene(store, self.clock, place.store)

    async def moved(self) -> Scene:
        """Move, and open the target."""
        await move(self.source, self.target)
        return await self.open_target()


def story(test: Callable[[Any, Stage], Awaitable[None]]) -> Callable[[Any], None]:
    def play(self: MoverContract) -> None:
        async def on_stage() -> None:
            async with Stage(self.make_place) as stage:
                await test(self, stage)

        asyncio.run(on_stage())

    play.__name__, play.__qualname__, play.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return play


class MoverContract:
    """Subclass it and define `make_place`. No test sleeps: the clock is moved."""

    def make_place(self) -> Place:
        """An empty place, another one each time."""
        raise NotImplementedError("say where the store under test is")

    # --- all of it ---

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
        unsent = await (await stage.open_target()).do(ReadOutbox(1000))
        assert len(unsent) == len({event.id for event in unsent})

    @story
    async def test_a_run_with_very_many_results_arrives(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        for step in range(0, 5000, 500):
            await stage.scene.apply(
                *[a_checkpoint("r1", epoch, "s", f"i{number:04}") for number in range(step, step + 500)]
            )
        target = await stage.moved()
        assert len(await target.store.checkpoints("r1")) == 5000

    # --- what goes on afterwards ---

    @story
    async def test_a_running_run_arrives_in_the_queue_as_when_its_worker_vanished(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        await stage.scene.do(a_checkpoint("r1", epoch, "s"))
        target = await stage.moved()
        assert await target.last_event("r1") == ("run.worker_lost", {"attempt": 1})
        [claimed] = await target.claim()
        assert (claimed.run, claimed.attempt, claimed.resumed) == ("r1", 2, True)
        assert claimed.epoch > epoch
        assert [found.step for found in await target.store.checkpoints("r1")] == ["s"]

    @story
    async def test_a_running_run_whose_attempts_are_used_up_arrives_failed(self, stage: Stage) -> None:
        await stage.scene.start("r1", max_attempts=1)
        target = await stage.moved()
        assert await target.state("r1") == "failed"
        assert "WorkerLost" in (await target.dead_letter("r1")).reason

    @story
    async def test_the_order_of_a_parallel_lane_is_kept(self, stage: Stage) -> None:
        for number in range(9):
            await stage.scene.submit(f"r{number}", priority=number % 3, pipeline=("report", "solo")[number % 2])
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
    async def test_a_blocked_lane_stays_blocked_until_its_head_is_resumed(self, stage: Stage) -> None:
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
        assert await target.submit("r5", unique=True, pipeline="solo") == Submitted("r2", False, "queued")
        await target.do(PauseRun("r2", "ann"))
        assert await target.submit("r6", unique=True, pipeline="solo") == Submitted("r2", False, "paused")

    @story
    async def test_failures_of_checkpoints_are_counted_on(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        for key in ("a", "b"):
            await stage.scene.apply(a_checkpoint("r1", epoch, "s", key), Quarantine("r1", epoch, "s", key, "bad"))
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
    async def test_the_outbox_goes_on_where_a_relay_had_come_to(self, stage: Stage) -> None:
        await stage.scene.submit("r1")
        await stage.scene.submit("r2")
        await stage.scene.settle("r1", await stage.scene.restart("r1"), "succeeded")
        events = await stage.scene.do(ReadOutbox(100))
        await stage.scene.do(ConfirmOutbox(events[1].position))
        target = await stage.moved()
        unsent = await target.do(ReadOutbox(100))
        assert [event.id for event in unsent] == ["r1:2", "r1:3"]
        await target.do(ConfirmOutbox(unsent[-1].position))
        await target.submit("r3")
        assert [event.id for event in await target.do(ReadOutbox(100))] == ["r3:1"]

    @story
    async def test_numbers_go_on_after_everything_was_pruned(self, stage: Stage) -> None:
        await stage.scene.settle("r1", await stage.scene.start("r1"), "succeeded")
        events = await stage.scene.do(ReadOutbox(100))
        await stage.scene.do(ConfirmOutbox(events[-1].position))
        seq = (await stage.scene.run("r1")).seq
        stage.clock.advance(10.0)
        await stage.scene.do(Prune(0.0, 0.0))
        target = await stage.moved()
        await target.submit("r2")
        assert (await target.run("r2")).seq > seq
        assert [event.id for event in await target.do(ReadOutbox(100))] == ["r2:1"]

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

    # --- marks ---

    @story
    async def test_a_held_store_refuses_to_be_opened_and_says_where_its_runs_are(self, stage: Stage) -> None:
        for mark, words in ((LEAVING, "being moved to"), (MOVED, "were moved to"), (ARRIVING, "filled from")):
            await stage.source.hold(mark)
            with pytest.raises(ConfigurationError, match=f"{words} redis://elsewhere/0"):
                await stage.open_source()

    @story
    async def test_nobody_writes_to_a_held_store(self, stage: Stage) -> None:
        scene = stage.scene
        epoch = await scene.start("r1")
        await scene.submit("r2")
        await scene.submit("r3")
        await scene.do(PauseRun("r3", "ann"))
        await stage.source.hold(LEAVING)
        before = await everything(scene.store)
        writes: list[Command] = [
            a_submit("r4"),
            Cancel("r2", "ann"),
            PauseRun("r2", "ann"),
            Resume("r3", "ann"),
            Acquire("own", "t1", "me", 5.0),
            Bury("m1", "jobs", "bad", b"x"),
            DefineLane("line", "fifo", "skip"),
        ]
        for command in writes:
            with pytest.raises(StoreUnavailable, match="redis://elsewhere/0"):
                await scene.do(command)
        await refused_or_stale(scene, a_checkpoint("r1", epoch, "s"))
        assert await claimed_nothing(scene)
        assert await everything(scene.store) == before

    @story
    async def test_a_released_store_is_worked_with_again(self, stage: Stage) -> None:
        epoch = await stage.scene.start("r1")
        await stage.source.hold(LEAVING)
        await stage.source.release()
        assert (await stage.source.standing()).mark is None
        assert await stage.scene.restart("r1") > epoch
        assert not isinstance(await stage.scene.do(Cancel("r1", "ann")), Refused)
        await stage.open_source()

    @story
    async def test_the_standing_tells_the_mark_and_whether_there_is_anything(self, stage: Stage) -> None:
        standing = await stage.source.standing()
        assert (standing.mark, standing.empty, standing.numbers) == (None, True, Numbers())
        await stage.source.hold(LEAVING)
        assert (await stage.source.standing()).mark == LEAVING
        await stage.source.release()
        await stage.scene.do(DefineLane("line", "fifo", "skip"))
        assert (await stage.source.standing()).empty
        await stage.scene.submit("r1")
        standing = await stage.source.standing()
        assert (standing.empty, standing.runs) == (False, 1)
        assert standing.last_run == "r1"
        assert standing.numbers.seq >= (await stage.scene.run("r1")).seq

    @story
    async def test_the_standing_tells_who_is_at_work(self, stage: Stage) -> None:
        await stage.scene.start("r1")
        await stage.scene.do(Acquire("own", "t1", "me", 2 * TTL))
        holders = (await stage.source.standing()).holders
        assert [(holder.what, holder.who) for holder in holders] == [("run r1", "w1"), ("lock own", "me")]
        stage.clock.advance(TTL)
        assert [holder.what for holder in (await stage.source.standing()).holders] == ["lock own"]
        await stage.source.hold(LEAVING)
        assert (await stage.source.standing()).holders == []

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
        assert [found.actor for found in await (await stage.open_target()).store.audit()] == ["bob", "ann"]


async def refused_or_stale(scene: Scene, command: Command) -> None:
    """A holder whose lease has ended may learn that first."""
    try:
        assert await scene.do(command) is not None
    except StoreUnavailable:
        pass


async def claimed_nothing(scene: Scene) -> bool:
    try:
        return not await scene.claim(10)
    except StoreUnavailable:
        return True
