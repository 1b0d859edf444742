"""Bodies that a bus can't carry go through the blob store."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast import Holdfast, Pipeline
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.engine.claim_check import REFERENCE, ClaimChecks
from holdfast.errors import Damaged, InvalidInput
from holdfast.model.projection import Outgoing
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter

LIMIT = 1000
LARGE = json.dumps({"text": "x" * LIMIT}).encode()


class SmallBus(InProcessBus):
    max_body = LIMIT

    async def publish(self, topic, message):
        assert len(message.body) <= LIMIT
        await super().publish(topic, message)


def copies() -> Pipeline:
    pipeline = Pipeline("copies", input=dict)

    @pipeline.step
    async def copy(request: dict) -> dict:
        return request

    @pipeline.publishes(events=["run.completed"])
    def copied(event):
        return Outgoing("copied", event.result)

    return pipeline


def test_a_large_body_leaves_by_reference_and_arrives_whole():
    async def story():
        bus, blobs = SmallBus(), MemoryBlobs()
        pipeline = copies()
        async with Holdfast("memory:", [pipeline], bus=bus, blobs=blobs) as app:
            outgoing = bus.subscribe("copied", "reader")
            await app.receive("orders", pipeline)
            first = await app.submit(pipeline, json.loads(LARGE))
            await first.result()
            delivery = await asyncio.wait_for(anext(outgoing), 10)
            message = delivery.message
            assert message.body == b""
            assert message.attributes[REFERENCE].startswith("blobs:messages/")
            # Another worker receives it as its order.
            await bus.publish("orders", Message("m1", b"", message.attributes))
            async with asyncio.timeout(10):
                change = 0
                while (await app.store.count(RunFilter())).get("succeeded", 0) < 2:
                    change = await app.store.wait(change, 1.0)
            runs = await app.store.runs(RunFilter(), limit=10)
            assert {json.dumps(await (await app.run(run.id)).result()) for run in runs} == {
                LARGE.decode()
            }

    asyncio.run(story())


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.org/messages/" + "0" * 64,
        "gs://bucket/" + "messages/" + "0" * 64,
        "file:/srv/blobs/tenant/run/step/1/secret.json",
        "file:/srv/blobs/messages/../tenant/run/secret.json",
        "file:/srv/blobs/messages/" + "0" * 63,
        "messages/" + "0" * 64,
        "",
    ],
)
def test_only_messages_of_this_blob_store_are_read(reference):
    class Untouchable(MemoryBlobs):
        async def get(self, key):
            raise AssertionError(f"{key} was read")

    checks = ClaimChecks(Untouchable(), "file:/srv/blobs")
    with pytest.raises(InvalidInput, match="no message in the blob store"):
        asyncio.run(checks.body_of(b"", {REFERENCE: reference}))


def test_a_body_that_is_missing_or_was_changed_is_not_believed():
    async def story():
        blobs = MemoryBlobs()
        checks = ClaimChecks(blobs, "file:/srv/blobs")
        sent = await checks.check_in(Message("m", LARGE))
        again = await checks.check_in(Message("m", LARGE))
        assert again == sent
        assert await checks.body_of(b"", dict(sent.attributes)) == LARGE
        assert await checks.body_of(b"own", dict(sent.attributes)) == b"own"
        with pytest.raises(Damaged, match="is missing"):
            await ClaimChecks(MemoryBlobs(), "file:/srv/blobs").body_of(b"", dict(sent.attributes))
        await blobs.delete("messages/")
        await blobs.put(sent.attributes[REFERENCE].removeprefix("file:/srv/blobs/"), b"other")
        with pytest.raises(Damaged, match="was changed"):
            await checks.body_of(b"", dict(sent.attributes))

    asyncio.run(story())


def test_without_a_blob_store_the_bus_says_what_is_wrong():
    async def story():
        message = Message("m", LARGE)
        assert await ClaimChecks(None).check_in(message) is message

    asyncio.run(story())
