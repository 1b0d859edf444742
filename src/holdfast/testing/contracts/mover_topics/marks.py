"""Nobody works on a store that is held, and what it says of itself."""

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
from holdfast.testing.contracts.mover_topics.stage import (
    ARRIVING,
    LEAVING,
    MOVED,
    MoverTopics,
    Stage,
    everything,
    story,
)
from holdfast.testing.contracts.store_topics.scene import TTL, Scene, a_checkpoint, a_submit


class MarkTopics(MoverTopics):
    @story
    async def test_a_held_store_refuses_to_be_opened_and_says_where_its_runs_are(
        self, stage: Stage
    ) -> None:
        for mark, words in (
            (LEAVING, "being moved to"),
            (MOVED, "were moved to"),
            (ARRIVING, "filled from"),
        ):
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
    async def test_the_standing_tells_the_mark_and_whether_there_is_anything(
        self, stage: Stage
    ) -> None:
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
        assert [(holder.what, holder.who) for holder in holders] == [
            ("run r1", "w1"),
            ("lock own", "me"),
        ]
        stage.clock.advance(TTL)
        assert [holder.what for holder in (await stage.source.standing()).holders] == ["lock own"]
        await stage.source.hold(LEAVING)
        assert (await stage.source.standing()).holders == []


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
