"""The port over HTTP: what is asked twice is paid once, and what a crash can cost is bounded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest
from pydantic import BaseModel
from tests.unit.llm.harness import BRAIN, GOOD, KEY, QUESTION, Claims, FakeContext

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.answer_cache import AnswerCache
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.llm.language_model import HttpLanguageModel
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.errors import ConfigurationError, Fix
from holdfast.model.clock import SystemClock
from holdfast.ports.language_model import Question
from holdfast.testing.fakellm import FakeLLM, Fixed

MONTH = 30 * 86_400.0


def model_of(
    fake: FakeLLM, blobs: MemoryBlobs | None, vendor: str = "openai", **address: Any
) -> HttpLanguageModel:
    client = ModelClient(
        parse(fake.address(vendor, **address)),
        environment=fake.environment,
        transport=fake.transport(),
    )
    return HttpLanguageModel(client, AnswerCache(blobs, SystemClock(), MONTH))


@pytest.fixture
def fake() -> FakeLLM:
    return FakeLLM(BRAIN, key=KEY)


@pytest.fixture
def ctx() -> Any:
    return FakeContext()


# --- the cache ------------------------------------------------------------------------------------


def test_the_same_question_is_paid_once(virtual_time, fake, ctx):
    async def story() -> None:
        model = model_of(fake, MemoryBlobs())
        first = await model.ask(QUESTION, Claims, ctx)
        assert await model.ask(QUESTION, Claims, ctx) == first

    virtual_time.run(story())
    assert len(fake.calls) == 1
    assert ctx.spent.calls == 1


def test_another_process_finds_the_answer_when_it_is_written(virtual_time, fake, ctx):
    blobs = MemoryBlobs()

    async def story() -> None:
        model = model_of(fake, blobs)
        first = await model.ask(QUESTION, Claims, ctx)
        await model.aclose()
        assert await model_of(fake, blobs).ask(QUESTION, Claims, ctx) == first

    virtual_time.run(story())
    assert len(fake.calls) == 1


def test_fresh_asks_again(virtual_time, fake, ctx):
    async def story() -> None:
        model = model_of(fake, MemoryBlobs())
        await model.ask(QUESTION, Claims, ctx)
        await model.ask(QUESTION, Claims, ctx, fresh=True)

    virtual_time.run(story())
    assert len(fake.calls) == 2


class Fewer(BaseModel):
    note: str | None = None


def test_another_type_of_answer_is_another_question(virtual_time, fake, ctx):
    async def story() -> None:
        model = model_of(fake, MemoryBlobs())
        await model.ask(QUESTION, Claims, ctx)
        await model.ask(QUESTION, Fewer, ctx)

    virtual_time.run(story())
    assert len(fake.calls) == 2


def test_parts_of_an_answer_are_recalled_one_by_one(virtual_time, fake, ctx):
    async def story() -> tuple[Any, ...]:
        model = model_of(fake, MemoryBlobs())
        await model.ask(
            QUESTION,
            Claims,
            ctx,
            cache_parts=lambda answer: [(("of", claim.id), claim.text) for claim in answer.claims],
        )
        await model.ask(QUESTION, Claims, ctx, cache_parts=lambda answer: [])
        return (
            await model.recall(("of", "c1"), str, ctx),
            await model.recall(("of", "c1"), int, ctx),
            await model.recall(("of", "c2"), str, ctx),
        )

    assert virtual_time.run(story()) == ("Parks are nice", None, None)
    assert len(fake.calls) == 2, "a call about several things is not looked up as a whole"


def test_what_is_remembered_is_recalled_by_this_tenant_alone(virtual_time, fake, ctx):
    other: Any = FakeContext()
    other.tenant = "other"

    async def story() -> tuple[Any, Any]:
        model = model_of(fake, MemoryBlobs())
        await model.remember(("topics",), Fewer(note="x"), ctx)
        return (
            await model.recall(("topics",), Fewer, ctx),
            await model.recall(("topics",), Fewer, other),
        )

    assert virtual_time.run(story()) == (Fewer(note="x"), None)


def test_without_a_blob_store_nothing_is_asked(virtual_time, fake, ctx):
    with pytest.raises(ConfigurationError, match="HOLDFAST_BLOBS"):
        virtual_time.run(model_of(fake, None).ask(QUESTION, Claims, ctx))
    assert fake.calls == []


# --- types of answers -----------------------------------------------------------------------------


class Colours(msgspec.Struct):
    kind: Literal["warm", "cold"]
    names: list[str]
    best: int | None = None


@dataclass
class Size:
    width: int


@pytest.mark.parametrize(
    ("kind", "reply", "answer"),
    [
        (Colours, {"kind": "warm", "names": ["red"], "best": None}, Colours("warm", ["red"])),
        (Size, {"width": 3}, Size(3)),
        (str, {"answer": "yes"}, "yes"),
        (list[int], {"answer": [1, 2]}, [1, 2]),
        (list[int], [1, 2], [1, 2]),
        (list[Colours], {"answer": [{"kind": "cold", "names": []}]}, [Colours("cold", [])]),
        (bool, {"answer": False}, False),
    ],
)
@pytest.mark.parametrize("vendor", ["openai", "anthropic", "google"])
def test_answers_have_the_type_that_is_wanted_and_are_cached_as_such(
    virtual_time, ctx, vendor, kind, reply, answer
):
    if vendor == "anthropic" and not isinstance(reply, dict):
        pytest.skip("the input of a tool is an object")
    fake = FakeLLM(Fixed(answer=reply), key=KEY)

    async def story() -> list[Any]:
        model = model_of(fake, MemoryBlobs(), vendor)
        return [await model.ask(Question("s", "t"), kind, ctx) for _ in range(2)]

    assert virtual_time.run(story()) == [answer, answer]
    assert len(fake.calls) == 1


def test_what_does_not_fit_a_struct_is_sent_back_with_the_reason(virtual_time, ctx):
    fake = FakeLLM(Fixed(answer={"kind": "hot", "names": []}), key=KEY)
    with pytest.raises(Exception, match="after 2 repairs"):
        virtual_time.run(model_of(fake, MemoryBlobs()).ask(Question("s", "t"), Colours, ctx))
    assert len(fake.calls) == 3


@pytest.mark.parametrize("kind", [dict[str, int], object, Any, type(lambda: 0)])
def test_a_type_without_a_schema_is_refused_before_anything_is_asked(virtual_time, fake, ctx, kind):
    with pytest.raises(Fix, match="can't be an answer"):
        virtual_time.run(model_of(fake, MemoryBlobs()).ask(QUESTION, kind, ctx))
    assert fake.calls == []


# --- crashes --------------------------------------------------------------------------------------


class SlowBlobs(MemoryBlobs):
    """Writes nothing before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        await self.gate.wait()
        return await super().put(key, data, durable=durable)


def test_a_call_is_in_flight_until_its_answer_is_written(virtual_time, fake, ctx):
    async def story() -> tuple[int, int]:
        blobs = SlowBlobs()
        model = model_of(fake, blobs, in_flight=1)
        await model.ask(QUESTION, Claims, ctx)
        second = asyncio.create_task(model.ask(Question("s", "other", "claims"), Claims, ctx))
        await asyncio.sleep(10)
        before = len(fake.calls)
        blobs.gate.set()
        await second
        return before, len(fake.calls)

    assert virtual_time.run(story()) == (1, 2)


def test_an_answer_that_is_not_written_yet_is_found(virtual_time, fake, ctx):
    async def story() -> Any:
        model = model_of(fake, SlowBlobs(), in_flight=2)
        await model.ask(QUESTION, Claims, ctx)
        return await model.ask(QUESTION, Claims, ctx)

    assert virtual_time.run(story()).model_dump() == GOOD
    assert len(fake.calls) == 1


def test_a_call_that_fails_gives_its_slot_back(virtual_time, ctx):
    fake = FakeLLM(Fixed(claims={"nonsense": 1}), key=KEY)

    async def story() -> None:
        model = model_of(fake, MemoryBlobs(), in_flight=1)
        for _ in range(3):
            with pytest.raises(Exception, match="after 2 repairs"):
                async with asyncio.timeout(60):
                    await model.ask(QUESTION, Claims, ctx)

    virtual_time.run(story())
