"""The outbox: every event, in the order of commit, until a relay confirms it."""

from __future__ import annotations

from holdfast.model.commands import ConfirmOutbox, ReadOutbox
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_checkpoint, story


async def unsent(scene: Scene, limit: int = 200) -> list[str]:
    return [event.id for event in await scene.do(ReadOutbox(limit))]


class OutboxTopics(StoreTopics):
    @story
    async def test_events_are_read_in_the_order_they_were_committed(self, scene: Scene) -> None:
        await scene.submit("r2")
        await scene.submit("r1")
        epoch = await scene.restart("r2")
        await scene.do(a_checkpoint("r2", epoch))
        assert await unsent(scene) == ["r2:1", "r1:1", "r2:2", "r2:3"]
        positions = [event.position for event in await scene.do(ReadOutbox())]
        assert positions == sorted(set(positions))

    @story
    async def test_the_outbox_holds_the_very_events_of_the_history(self, scene: Scene) -> None:
        epoch = await scene.start("r1", tenant="acme")
        await scene.settle("r1", epoch, "succeeded", last=a_checkpoint("r1", epoch))
        assert await scene.do(ReadOutbox()) == await scene.store.history("r1")

    @story
    async def test_reading_twice_gives_the_same_events(self, scene: Scene) -> None:
        await scene.submit("r1")
        assert await scene.do(ReadOutbox()) == await scene.do(ReadOutbox())

    @story
    async def test_reading_gives_no_more_than_its_limit(self, scene: Scene) -> None:
        for number in range(5):
            await scene.submit(f"r{number}")
        assert await unsent(scene, 2) == ["r0:1", "r1:1"]

    @story
    async def test_confirmed_events_are_not_read_again(self, scene: Scene) -> None:
        for number in range(4):
            await scene.submit(f"r{number}")
        events = await scene.do(ReadOutbox())
        assert await scene.do(ConfirmOutbox(events[1].position)) is None
        assert await unsent(scene) == ["r2:1", "r3:1"]
        assert len(await scene.store.history("r0")) == 1

    @story
    async def test_confirming_never_goes_back(self, scene: Scene) -> None:
        for number in range(4):
            await scene.submit(f"r{number}")
        events = await scene.do(ReadOutbox())
        await scene.apply(
            ConfirmOutbox(events[2].position), ConfirmOutbox(events[0].position), ConfirmOutbox(0)
        )
        assert await unsent(scene) == ["r3:1"]

    @story
    async def test_later_events_follow_after_a_confirmation(self, scene: Scene) -> None:
        await scene.submit("r1")
        await scene.do(ConfirmOutbox((await scene.do(ReadOutbox()))[-1].position))
        assert await unsent(scene) == []
        await scene.submit("r2")
        assert await unsent(scene) == ["r2:1"]

    @story
    async def test_positions_compare_as_numbers(self, scene: Scene) -> None:
        for number in range(12):
            await scene.submit(f"r{number}")
        events = await scene.do(ReadOutbox())
        await scene.do(ConfirmOutbox(events[8].position))
        await scene.do(ConfirmOutbox(events[10].position))
        assert await unsent(scene) == ["r11:1"]
