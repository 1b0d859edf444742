"""The cache of answers: found again by what was asked, never shared, never trusted when damaged."""

import asyncio

import pytest

from holdfast.adapters.files.blobs import FileBlobs
from holdfast.adapters.llm.answers import Answers
from holdfast.adapters.memory.blobs import MemoryBlobs

ASKED = ("openai:gpt-4o-mini", "claims", "Find the claims.", "I like the park.")


@pytest.fixture(params=["memory", "files"])
def blobs(request, tmp_path):
    return MemoryBlobs() if request.param == "memory" else FileBlobs(tmp_path)


def stored(blobs) -> list[str]:
    return asyncio.run(blobs.list("acme/answers/"))


def test_an_answer_is_found_again(blobs):
    async def story():
        answers = Answers(blobs)
        assert await answers.get("acme", ASKED) is None
        await answers.put("acme", ASKED, '{"claims": []}')
        return await Answers(blobs).get("acme", ASKED)

    assert asyncio.run(story()) == '{"claims": []}'
    assert len(stored(blobs)) == 1


@pytest.mark.parametrize(
    "other",
    [
        ("openai:gpt-4o", *ASKED[1:]),
        (*ASKED[:3], "I like the park!"),
        (*ASKED[:2], "Find the claims.I", " like the park."),
        (*ASKED, ""),
        ASKED[:3],
        (),
    ],
)
def test_any_difference_is_another_question(blobs, other):
    async def story():
        answers = Answers(blobs)
        await answers.put("acme", ASKED, "mine")
        return await answers.get("acme", other)

    assert asyncio.run(story()) is None


def test_tenants_share_nothing(blobs):
    async def story():
        answers = Answers(blobs)
        await answers.put("acme", ASKED, "mine")
        return await answers.get("other", ASKED)

    assert asyncio.run(story()) is None


def test_the_first_answer_stays(blobs):
    async def story():
        answers = Answers(blobs)
        await asyncio.gather(*(answers.put("acme", ASKED, f"answer {n}") for n in range(20)))
        found = await asyncio.gather(*(answers.get("acme", ASKED) for _ in range(20)))
        return set(found)

    assert len(asyncio.run(story())) == 1
    assert len(stored(blobs)) == 1


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"null", b'{"checksum": "x", "answer": "forged"}', b"\xff\xfe"]
)
def test_a_damaged_entry_is_passed_over_and_replaced(damage):
    blobs = MemoryBlobs()

    async def story():
        answers = Answers(blobs)
        await answers.put("acme", ASKED, "good")
        (key,) = await blobs.list("acme/answers/")
        blobs._objects[key] = damage
        assert await answers.get("acme", ASKED) is None
        await answers.put("acme", ASKED, "good again")
        await answers.put("acme", ASKED, "and again")
        return await answers.get("acme", ASKED)

    assert asyncio.run(story()) == "good again"
    assert len(stored(blobs)) == 2


def test_any_text_can_be_an_answer_or_a_part(blobs):
    text = "\x00 😀 \u2028 私は " * 10_000

    async def story():
        answers = Answers(blobs)
        await answers.put("acme", (text,), text)
        return await answers.get("acme", (text,))

    assert asyncio.run(story()) == text
