"""The relay: committed events reach the bus in order, at least once, every copy the same."""

import asyncio
import json

import pytest

from holdfast import Pipeline
from holdfast.engine.publishing import MessageTarget
from holdfast.engine.relay import Relay
from holdfast.errors import Transient
from holdfast.model.cloudevent import events_projection
from holdfast.model.event import EVENTS_TOPIC


class Topic:
    """A bus that keeps what is published, and is away when told."""

    def __init__(self):
        self.messages = []
        self.fail_at = set()
        self.calls = 0
        self.back, self.complete = asyncio.Event(), asyncio.Event()

    async def publish(self, topic, message):
        assert topic == EVENTS_TOPIC
        self.calls += 1
        if self.calls in self.fail_at:
            if self.calls == max(self.fail_at):
                self.back.set()
            raise Transient("the bus is away")
        self.messages.append(message)
        if len(self.messages) == 5:
            self.complete.set()

    @property
    def ids(self):
        return [message.attributes["ce-id"] for message in self.messages]


@pytest.fixture
def engine(lab):
    pipeline = Pipeline("p")
    pipeline.step(name="a")(lambda: 1)
    pipeline.step(name="b")(lambda: 2)
    engine = lab(pipeline)
    engine.run = engine.submit(pipeline, tenant="acme")
    engine.drain()
    return engine


def relay(engine, bus):
    runtime = engine.app.runtime
    return Relay(runtime, MessageTarget(events_projection(), bus, runtime), "tester")


def test_all_events_are_published_in_the_order_they_were_committed(engine):
    bus = Topic()
    assert engine.call(relay(engine, bus).drain()) == 5
    assert bus.ids == [event.id for event in engine.history(engine.run)]
    assert [message.attributes["ce-type"] for message in bus.messages] == [
        "dev.holdfast.run.queued.v1",
        "dev.holdfast.run.started.v1",
        "dev.holdfast.step.completed.v1",
        "dev.holdfast.step.completed.v1",
        "dev.holdfast.run.completed.v1",
    ]


def test_what_was_confirmed_is_not_published_again(engine):
    bus = Topic()
    engine.call(relay(engine, bus).drain())
    assert engine.call(relay(engine, bus).drain()) == 0
    assert len(bus.messages) == 5


def test_a_bus_that_fails_in_between_gets_the_same_messages_again(engine):
    bus = Topic()
    bus.fail_at = {4}
    with pytest.raises(Transient):
        engine.call(relay(engine, bus).drain())
    engine.call(relay(engine, bus).drain())
    copies = {}
    for message in bus.messages:
        assert copies.setdefault(message.id, message) == message
    assert list(copies) == [f"events:{event.id}" for event in engine.history(engine.run)]


def test_the_outbox_drains_within_five_seconds_of_the_bus_returning(engine):
    bus = Topic()
    bus.fail_at = set(range(1, 8))

    async def story():
        running = asyncio.ensure_future(relay(engine, bus).run())
        await bus.back.wait()
        back = engine.clock.monotonic()
        await bus.complete.wait()
        running.cancel()
        return engine.clock.monotonic() - back

    assert engine.call(story()) < 5


def test_a_new_event_is_relayed_when_it_happens(engine):
    bus = Topic()

    async def story():
        running = asyncio.ensure_future(relay(engine, bus).run())
        await asyncio.sleep(3)
        run = await engine.app.submit("p")
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return run

    run = engine.call(story())
    assert f"{run.id}:1" in bus.ids


def test_two_relays_do_not_publish_twice(engine):
    first, second = Topic(), Topic()

    async def story():
        running = [asyncio.ensure_future(relay(engine, bus).run()) for bus in (first, second)]
        await asyncio.sleep(5)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    engine.call(story())
    assert sorted([len(first.messages), len(second.messages)]) == [0, 5]


def test_a_message_is_a_cloud_event(engine):
    bus = Topic()
    engine.call(relay(engine, bus).drain())
    completed = bus.messages[2]
    attributes = completed.attributes
    assert attributes["ce-specversion"] == "1.0"
    assert attributes["ce-id"] == f"{engine.run.id}:3"
    assert completed.id == f"events:{engine.run.id}:3"
    assert completed.ordering_key == engine.run.id
    assert "ce-stateto" not in attributes
    started = bus.messages[1].attributes
    assert (started["ce-statefrom"], started["ce-stateto"]) == ("queued", "running")
    assert attributes["ce-source"] == "/holdfast/local/acme/p"
    assert attributes["ce-subject"] == engine.run.id
    assert attributes["ce-time"].endswith("Z")
    assert json.loads(completed.body)["step"] == "a"
