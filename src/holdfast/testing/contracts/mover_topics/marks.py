"""A held store refuses writes, and reports its mark."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.commands import (
    Acquire,
    Bury,
    Cancel,
    Command,
    DefineLane,
    PauseRun,
    Refused,
    Resume,
)
from holdfast.ports.mover import Numbers
from holdfast.testing.contracts.mover_topics.harness import (
    ARRIVING,
    LEAVING,
    MOVED,
    MoverHarness,
    MoverTopics,
    everything,
    mover_test,
)
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    a_checkpoint,
    a_submit,
)


class MarkTopics(MoverTopics):
    @mover_test
    async def test_a_held_store_refuses_to_be_opened_and_says_where_its_runs_are(
        self, harness: MoverHarness
    ) -> None:
        for mark, words in (
            (LEAVING, "being moved to"),
            (MOVED, "were moved to"),
            (ARRIVING, "filled from"),
        ):
            await harness.source.hold(mark)
            with pytest.raises(ConfigurationError, match=f"{words} redis://elsewhere/0"):
                await harness.open_source()

    @mover_test
    async def test_nobody_writes_to_a_held_store(self, harness: MoverHarness) -> None:
        source_store = harness.source_store
        epoch = await source_store.start("r1")
        await source_store.submit("r2")
        await source_store.submit("r3")
        await source_store.do(PauseRun("r3", "ann"))
        await harness.source.hold(LEAVING)
        before = await everything(source_store.store)
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
                await source_store.do(command)
        await refused_or_stale(source_store, a_checkpoint("r1", epoch, "s"))
        assert await claimed_nothing(source_store)
        assert await everything(source_store.store) == before

    @mover_test
    async def test_a_released_store_is_worked_with_again(self, harness: MoverHarness) -> None:
        epoch = await harness.source_store.start("r1")
        await harness.source.hold(LEAVING)
        await harness.source.release()
        assert (await harness.source.move_state()).mark is None
        assert await harness.source_store.restart("r1") > epoch
        assert not isinstance(await harness.source_store.do(Cancel("r1", "ann")), Refused)
        await harness.open_source()

    @mover_test
    async def test_the_state_of_a_move_tells_the_mark_and_whether_there_is_anything(
        self, harness: MoverHarness
    ) -> None:
        state = await harness.source.move_state()
        assert (state.mark, state.empty, state.numbers) == (None, True, Numbers())
        await harness.source.hold(LEAVING)
        assert (await harness.source.move_state()).mark == LEAVING
        await harness.source.release()
        await harness.source_store.do(DefineLane("line", "fifo", "skip"))
        assert (await harness.source.move_state()).empty
        await harness.source_store.submit("r1")
        state = await harness.source.move_state()
        assert (state.empty, state.runs) == (False, 1)
        assert state.last_run == "r1"
        assert state.numbers.seq >= (await harness.source_store.run("r1")).seq

    @mover_test
    async def test_the_state_of_a_move_tells_who_is_at_work(self, harness: MoverHarness) -> None:
        await harness.source_store.start("r1")
        await harness.source_store.do(Acquire("own", "t1", "me", 2 * TTL))
        holders = (await harness.source.move_state()).holders
        assert [(holder.subject, holder.owner) for holder in holders] == [
            ("run r1", "w1"),
            ("lock own", "me"),
        ]
        harness.clock.advance(TTL)
        assert [holder.subject for holder in (await harness.source.move_state()).holders] == [
            "lock own"
        ]
        await harness.source.hold(LEAVING)
        assert (await harness.source.move_state()).holders == []


async def refused_or_stale(source_store: StoreHarness, command: Command) -> None:
    """A holder whose lease has ended may learn that first."""
    try:
        assert await source_store.do(command) is not None
    except StoreUnavailable:
        pass


async def claimed_nothing(source_store: StoreHarness) -> bool:
    try:
        return not await source_store.claim(10)
    except StoreUnavailable:
        return True
