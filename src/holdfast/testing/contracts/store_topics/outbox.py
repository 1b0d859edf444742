"""The outbox: every event, in the order of commit, as often as somebody reads it."""

from __future__ import annotations

from holdfast.model.commands import Bury, Discard
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_checkpoint, story


async def behind(scene: Scene, after: int = 0, limit: int = 200) -> list[str]:
    return [event.id for event in await scene.store.outbox(after, limit)]


class OutboxTopics(StoreTopics):
    @story
    async def test_events_are_read_in_the_order_they_were_committed(self, scene: Scene) -> None:
        await scene.submit("r2")
        await scene.submit("r1")
        epoch = await scene.restart("r2")
        await scene.do(a_checkpoint("r2", epoch))
        assert await behind(scene) == ["r2:1", "r1:1", "r2:2", "r2:3"]
        positions = [event.position for event in await scene.store.outbox(0)]
        assert positions == sorted(set(positions))

    @story
    async def test_the_outbox_holds_the_very_events_of_the_history(self, scene: Scene) -> None:
        epoch = await scene.start("r1", tenant="acme")
        await scene.settle("r1", epoch, "succeeded", last=a_checkpoint("r1", epoch))
        assert await scene.store.outbox(0) == await scene.store.history("r1")

    @story
    async def test_reading_twice_gives_the_same_events(self, scene: Scene) -> None:
        await scene.submit("r1")
        assert await scene.store.outbox(0) == await scene.store.outbox(0)

    @story
    async def test_reading_gives_no_more_than_its_limit(self, scene: Scene) -> None:
        for number in range(5):
            await scene.submit(f"r{number}")
        assert await behind(scene, limit=2) == ["r0:1", "r1:1"]

    @story
    async def test_reading_goes_on_behind_any_position(self, scene: Scene) -> None:
        for number in range(12):
            await scene.submit(f"r{number}")
        epoch = await scene.restart("r0")
        await scene.settle("r0", epoch, "succeeded", last=a_checkpoint("r0", epoch))
        events = await scene.store.outbox(0)
        assert len(events) == 15
        for number, event in enumerate(events, 1):
            assert await scene.store.outbox(event.position) == events[number:]
        await scene.submit("later")
        assert await behind(scene, events[-1].position) == ["later:1"]

    @story
    async def test_a_buried_message_is_an_event_without_a_run(self, scene: Scene) -> None:
        await scene.submit("r1")
        await scene.do(Bury("message:t:1", "t", "bad", b"x", {"a": "b"}, "acme"))
        await scene.submit("r2")
        assert await behind(scene) == ["r1:1", "message:t:1:1", "r2:1"]
        event = (await scene.store.outbox(0))[1]
        assert (event.type, event.tenant, event.pipeline) == ("message.dead_lettered", "acme", "")
        assert event.at == scene.clock.now()

    @story
    async def test_a_message_that_is_buried_again_is_no_new_event(self, scene: Scene) -> None:
        bury = Bury("m1", "t", "bad", b"x")
        assert await scene.apply(bury, bury) == [True, False]
        await scene.do(Discard("m1", "ann", "known"))
        assert await scene.do(bury) is False
        assert await behind(scene) == ["m1:1"]
