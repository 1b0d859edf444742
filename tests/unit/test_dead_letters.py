"""What can't go on is kept once, with its bytes, and can be sent on its way again."""

import asyncio

import pytest

from holdfast import Pipeline
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.engine.receiver import Receiver
from holdfast.errors import NotFound, StoreUnavailable
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter
from holdfast.services.operations import Operations
from holdfast.testing.world import at_once


def breaking(times):
    pipeline, tries = Pipeline("p", input=int), []

    @pipeline.step(max_attempts=1)
    async def s(input: int) -> int:
        tries.append(1)
        if len(tries) <= times:
            raise ValueError("broken")
        return input

    return pipeline


def letters(engine, **options):
    return at_once(engine.store.dead_letters(**options))


def failed(lab, times=1):
    pipeline = breaking(times)
    engine = lab(pipeline)
    run = engine.submit(pipeline, 7)
    engine.drain()
    return engine, run


# --- runs -----------------------------------------------------------------------------------------


def test_a_failed_run_leaves_one_dead_letter_with_its_input(lab):
    engine, run = failed(lab)
    [letter] = letters(engine)
    assert (letter.run, letter.body, letter.reason) == (run.id, b"7", "ValueError: broken")


def test_redriving_lets_the_run_go_on(lab):
    engine, run = failed(lab)
    assert engine.operate("redrive", f"run:{run.id}") is True
    engine.drain()
    assert engine.result(run) == 7
    assert letters(engine) == []


def test_redriving_twice_does_it_once(lab):
    engine, run = failed(lab)
    assert engine.operate("redrive", run.id) is True
    assert engine.operate("redrive", run.id) is False
    engine.drain()
    assert engine.times("s") == 2


def test_two_who_redrive_at_once_do_it_once(lab):
    engine, run = failed(lab)

    async def both():
        operations = engine.app.operations
        return await asyncio.gather(operations.redrive(run.id), operations.redrive(run.id))

    assert sorted(engine.call(both())) == [False, True]


def test_a_run_that_fails_again_has_the_same_dead_letter_again(lab):
    engine, run = failed(lab, times=2)
    engine.operate("redrive", run.id)
    engine.drain()
    [letter] = letters(engine, open_only=False)
    assert letter.closed is None
    assert engine.operate("redrive", run.id) is True


def test_a_discarded_dead_letter_is_closed_for_good(lab):
    engine, run = failed(lab)
    assert engine.operate("discard", run.id, reason="known") is True
    assert engine.operate("discard", run.id) is False
    assert engine.operate("redrive", run.id) is False
    [letter] = letters(engine, open_only=False)
    assert letter.resolution == "discarded"


def test_an_unknown_dead_letter_is_not_found(lab):
    engine, _ = failed(lab)
    with pytest.raises(NotFound, match="holdfast dlq list"):
        engine.operate("redrive", "nope")


# --- messages -------------------------------------------------------------------------------------


class Delivered:
    """A delivery that remembers how it ended."""

    attempt = 1

    def __init__(self, id, body, **attributes):
        self.message = Message(id, body, attributes)
        self.ended = None

    async def ack(self):
        self.ended = "ack"

    async def nack(self, delay=0.0):
        self.ended = f"nack {delay:g}"


def receiving(lab, **options):
    pipeline = breaking(0)
    engine = lab(pipeline)
    receiver = Receiver(
        engine.app.runtime, InProcessBus(), Receive("orders", pipeline.name), pipeline, **options
    )

    def receive(delivery):
        engine.call(receiver.receive(delivery))
        return delivery.ended

    return engine, receive


def runs(engine):
    return at_once(engine.store.runs(RunFilter()))


def test_a_good_message_becomes_a_run_and_is_acknowledged(lab):
    engine, receive = receiving(lab, tenant="acme")
    assert receive(Delivered("m1", b"5")) == "ack"
    [run] = runs(engine)
    assert (run.tenant, run.key, run.input) == ("acme", "orders:m1", "5")


def test_a_good_message_that_comes_twice_is_one_run(lab):
    engine, receive = receiving(lab)
    assert [receive(Delivered("m1", b"5")) for _ in range(2)] == ["ack", "ack"]
    assert len(runs(engine)) == 1
    assert letters(engine) == []


@pytest.mark.parametrize("body", [b"\xff\xfe", b"{", b'"five"', b""])
def test_a_bad_message_is_buried_once_with_its_bytes_and_acknowledged(lab, body):
    engine, receive = receiving(lab)
    assert [receive(Delivered("m1", body, source="x")) for _ in range(2)] == ["ack", "ack"]
    [letter] = letters(engine)
    assert (letter.body, letter.source, letter.attributes) == (body, "orders", {"source": "x"})
    assert runs(engine) == []


def test_the_same_id_with_another_body_is_buried(lab):
    engine, receive = receiving(lab)
    receive(Delivered("m1", b"5"))
    assert receive(Delivered("m1", b"6")) == "ack"
    [letter] = letters(engine)
    assert "KeyReused" in letter.reason


@pytest.mark.parametrize(
    "error",
    [
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        RecursionError,
    ],
)
def test_whatever_a_decoder_raises_buries_the_message(lab, error):
    def decode(message):
        raise error("odd")

    engine, receive = receiving(lab, decode=decode)
    assert receive(Delivered("m1", b"5")) == "ack"
    assert len(letters(engine)) == 1


def test_while_the_store_is_away_nothing_is_acknowledged(lab, monkeypatch):
    engine, receive = receiving(lab)

    async def away(commands):
        raise StoreUnavailable("away")

    monkeypatch.setattr(engine.store, "apply", away)
    assert receive(Delivered("m1", b"5")) == "nack 5"
    assert receive(Delivered("m2", b"{")) == "nack 5"


def test_a_redriven_message_is_published_once_with_its_bytes(lab):
    engine, receive = receiving(lab)
    receive(Delivered("m1", b"{", source="x"))
    [letter] = letters(engine)
    bus = InProcessBus()
    operations = Operations(engine.app.runtime, engine.app.pipelines, bus)

    async def story():
        subscription = bus.subscribe("orders", "test")
        assert await operations.redrive(letter.id) is True
        assert await operations.redrive(letter.id) is False
        delivery = await anext(subscription)
        assert subscription._group.waiting.empty()
        return delivery.message

    message = engine.call(story())
    assert (message.body, message.attributes) == (b"{", {"source": "x"})


def test_a_message_with_a_long_id_can_be_redriven_too(lab):
    engine, receive = receiving(lab)
    assert receive(Delivered("redrive:message:orders:" + "x" * 240, b"5")) == "ack"
    assert len(runs(engine)) == 1


def test_messages_published_after_receive_returned_are_received():
    from holdfast import Holdfast

    async def story():
        bus, pipeline = InProcessBus(), breaking(0)
        async with Holdfast("memory:", [pipeline], bus=bus, worker=False) as app:
            await app.receive("orders", pipeline)
            await bus.publish("orders", Message("m1", b"5"))
            for _ in range(20):
                await asyncio.sleep(0)
            return await app.store.runs(RunFilter())

    assert len(asyncio.run(story())) == 1
