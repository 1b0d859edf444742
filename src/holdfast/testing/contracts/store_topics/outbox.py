"""The outbox: every event, in the order of commit, as often as somebody reads it."""

from __future__ import annotations

from holdfast.model.commands import Bury, Discard
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    store_test,
)


async def behind(harness: StoreHarness, after: int = 0, limit: int = 200) -> list[str]:
    return [event.id for event in await harness.store.outbox(after, limit)]


class OutboxTopics(StoreTopics):
    @store_test
    async def test_events_are_read_in_the_order_they_were_committed(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r2")
        await harness.submit("r1")
        epoch = await harness.restart("r2")
        await harness.do(a_checkpoint("r2", epoch))
        assert await behind(harness) == ["r2:1", "r1:1", "r2:2", "r2:3"]
        positions = [event.position for event in await harness.store.outbox(0)]
        assert positions == sorted(set(positions))

    @store_test
    async def test_the_outbox_holds_the_very_events_of_the_history(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", tenant="acme")
        await harness.settle("r1", epoch, "succeeded", last=a_checkpoint("r1", epoch))
        assert await harness.store.outbox(0) == await harness.store.history("r1")

    @store_test
    async def test_reading_twice_gives_the_same_events(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        assert await harness.store.outbox(0) == await harness.store.outbox(0)

    @store_test
    async def test_reading_gives_no_more_than_its_limit(self, harness: StoreHarness) -> None:
        for number in range(5):
            await harness.submit(f"r{number}")
        assert await behind(harness, limit=2) == ["r0:1", "r1:1"]

    @store_test
    async def test_reading_goes_on_behind_any_position(self, harness: StoreHarness) -> None:
        for number in range(12):
            await harness.submit(f"r{number}")
        epoch = await harness.restart("r0")
        await harness.settle("r0", epoch, "succeeded", last=a_checkpoint("r0", epoch))
        events = await harness.store.outbox(0)
        assert len(events) == 15
        for number, event in enumerate(events, 1):
            assert await harness.store.outbox(event.position) == events[number:]
        await harness.submit("later")
        assert await behind(harness, events[-1].position) == ["later:1"]

    @store_test
    async def test_a_buried_message_is_an_event_without_a_run(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        await harness.do(Bury("message:t:1", "t", "bad", b"x", {"a": "b"}, "acme"))
        await harness.submit("r2")
        assert await behind(harness) == ["r1:1", "message:t:1:1", "r2:1"]
        event = (await harness.store.outbox(0))[1]
        assert (event.type, event.tenant, event.pipeline) == ("message.dead_lettered", "acme", "")
        assert event.at == harness.clock.now()

    @store_test
    async def test_a_message_that_is_buried_again_is_no_new_event(
        self, harness: StoreHarness
    ) -> None:
        bury = Bury("m1", "t", "bad", b"x")
        assert await harness.apply(bury, bury) == [True, False]
        await harness.do(Discard("m1", "ann", "known"))
        assert await harness.do(bury) is False
        assert await behind(harness) == ["m1:1"]
