"""What a crash can cost: a call has its place among those in flight until its answer is put
away."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.llm_analyst.scene import Scene, play

from holdfast.adapters.llm.analysis.asking import Asker
from holdfast.adapters.llm.answers import Answers
from holdfast.adapters.memory.blobs import MemoryBlobs

ONE_AT_A_TIME = {"in_flight": 1}


class SlowBlobs(MemoryBlobs):
    """Puts nothing away before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self.asked.set()
        await self.gate.wait()
        return await super().put(key, data, durable=durable)


def test_no_other_call_begins_before_the_answer_is_put_away() -> None:
    async def story(scene: Scene) -> None:
        blobs = SlowBlobs()
        asker = Asker(scene.analyst._asker.model, Answers(blobs))
        async with asker.place() as keep:
            keep("acme", ("question",), '"answer"')
        await blobs.asked.wait()
        next_call = asyncio.create_task(asker.place().__aenter__())
        await asyncio.wait([next_call], timeout=0)
        assert not next_call.done()
        blobs.gate.set()
        await asyncio.wait_for(next_call, 10)
        assert await Answers(blobs).get("acme", ("question",)) == '"answer"'

    play(story, address=ONE_AT_A_TIME)


def test_a_call_that_fails_leaves_its_place() -> None:
    async def story(scene: Scene) -> None:
        asker = Asker(scene.analyst._asker.model, Answers(scene.blobs))
        for _ in range(3):
            with pytest.raises(ValueError, match="no answer"):
                async with asyncio.timeout(10), asker.place():
                    raise ValueError("no answer")

    play(story, address=ONE_AT_A_TIME)
