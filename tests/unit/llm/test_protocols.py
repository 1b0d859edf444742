"""Requests that the vendors' rules accept, dialects that are learned once, and what is read from
replies.

The fake server checks every request as its vendor would; an answer means that the request was
right."""

import asyncio
import json

import pytest
from tests.unit.llm.harness import GOOD, Claims, FakeContext, Harness, over_loopback

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.llm.errors import BadRequest
from holdfast.adapters.llm.openai import OpenAI
from holdfast.adapters.llm.protocol import Prompt
from holdfast.errors import Fix, Transient
from holdfast.ports.language_model import Declined, Question
from holdfast.testing.fakellm import always, in_turn

ANSWER = Claims.model_validate(GOOD)
LONG = "The taxonomy. " * 400


def test_a_question_is_asked_and_answered(vendor):
    async def story(harness: Harness) -> Harness:
        assert await harness.ask() == ANSWER
        return harness

    harness = over_loopback(story, vendor)
    (call,) = harness.fake.calls
    assert (call.vendor, call.task, call.system) == (vendor, "claims", "Find the claims.")
    assert call.text == "I like the park. <c id=7>"
    assert (harness.ctx.spent.input_tokens, harness.ctx.spent.output_tokens) == (
        call.input_tokens,
        call.output_tokens,
    )


@pytest.mark.parametrize(
    "text", ["\x00\x01\t", "naïve café – “quotes” 😀 私は", "half \ud800 a pair", "x" * 200_000]
)
def test_any_text_can_be_asked_about(vendor, text):
    async def story(harness: Harness) -> str:
        await harness.ask(Question("s", f"|{text}|", "claims"))
        return harness.fake.calls[0].text

    assert over_loopback(story, vendor) == f"|{text}|".replace("\ud800", "?")


@pytest.mark.parametrize(
    ("vendor", "lacks", "requests"),
    [
        ("openai", ["temperature"], 2),
        ("openai", ["max_tokens"], 2),
        ("openai", ["json_schema"], 2),
        ("openai", ["json_schema", "json_object"], 3),
        ("openai", ["json_schema", "json_object", "temperature", "max_tokens"], 5),
        ("anthropic", ["temperature"], 2),
        ("anthropic", ["tool_choice"], 2),
        ("anthropic", ["tool_choice", "temperature"], 3),
        ("google", ["responseJsonSchema"], 2),
        ("google", ["responseJsonSchema", "temperature"], 3),
    ],
)
def test_what_a_server_does_not_understand_is_said_differently_from_then_on(
    vendor, lacks, requests
):
    async def story(harness: Harness) -> Harness:
        for _ in range(3):
            assert await harness.ask() == ANSWER
        return harness

    harness = over_loopback(story, vendor, lacks=lacks)
    assert harness.fake.refused[400] == requests - 1
    assert harness.ctx.spent.calls == 3


def test_many_who_are_refused_at_once_learn_it_together():
    async def story(harness: Harness) -> Harness:
        await asyncio.gather(*(harness.ask() for _ in range(30)))
        return harness

    harness = over_loopback(story, lacks=["json_schema", "temperature"], latency=0.01)
    assert len(harness.fake.calls) == 30


def test_what_has_no_other_way_is_a_bad_request():
    async def story(harness: Harness) -> None:
        with pytest.raises(BadRequest, match="400: Unsupported parameter"):
            await harness.ask()

    over_loopback(story, lacks=["max_tokens", "max_completion_tokens"])


def test_a_schema_that_openai_calls_invalid_is_not_hidden_by_asking_without():
    dialect = OpenAI("m").dialect
    refusal = (
        "Invalid schema for response_format 'claims': In context=(), 'x' is not permitted. "
        "response_format"
    )
    assert not dialect.learn(dialect.shape, refusal)
    assert dialect.shape["format"] == "schema"


def test_openai_itself_is_told_the_newer_word_for_the_limit():
    prompt = Prompt("t", "s", ("q",), {}, 77)
    ours = json.loads(OpenAI("m", original=True).request(prompt, ApiKey("", "")).body)
    others = json.loads(OpenAI("m", original=False).request(prompt, ApiKey("", "")).body)
    assert (ours["max_completion_tokens"], others["max_tokens"]) == (77, 77)


@pytest.mark.parametrize(
    ("vendor", "written"), [("openai", False), ("anthropic", True), ("google", False)]
)
def test_tokens_from_the_vendors_cache_cost_less(vendor, written):
    async def story(harness: Harness) -> list[tuple[int, int, int]]:
        usages = []
        exchange = harness.model._protocol.reply

        def reply(data):
            exchanged = exchange(data)
            usages.append(
                (exchanged.input_tokens, exchanged.cached_tokens, exchanged.written_tokens)
            )
            return exchanged

        harness.model._protocol.reply = reply
        for _ in range(2):
            await harness.ask(Question(LONG, "text", "claims"))
        return usages

    first, second = over_loopback(story, vendor)
    size = len(LONG) // 4 + 1
    assert first[0] == second[0] > size
    assert first[1:] == (0, size if written else 0)
    assert second[1:] == (size, 0)


def test_a_server_without_a_key_is_asked_without_one(vendor):
    async def story(harness: Harness) -> Claims:
        harness.fake._key = None
        model = ModelClient(
            parse(harness.fake.address(vendor)), environment={"OPENAI_API_KEY": "sk-not-for-you"}
        )
        try:
            assert not model._key
            return await model.ask(Question("s", "t", "claims"), Claims, FakeContext())
        finally:
            await model.aclose()

    assert over_loopback(story, vendor) == ANSWER


def test_a_refusal_is_told_with_its_reason_and_paid(vendor):
    async def story(harness: Harness) -> Harness:
        with pytest.raises(Declined, match=r"declined to answer 'claims': (I'm sorry|PROHIBITED)"):
            await harness.ask()
        return harness

    harness = over_loopback(story, vendor, faults=always("refusal"))
    assert harness.ctx.spent.input_tokens == harness.fake.calls[0].input_tokens


@pytest.mark.parametrize("task", ["", "Claims", "two words", "a" * 41, "claims-1"])
def test_a_task_has_a_plain_name(task):
    async def story(harness: Harness) -> None:
        with pytest.raises(Fix, match="can't name a task"):
            await harness.ask(Question("s", "t", task))

    over_loopback(story)


REPLIES = [
    b"null",
    b"[]",
    b"7",
    b"{}",
    b'{"choices": []}',
    b'{"choices": [7]}',
    b'{"choices": {"0": 1}}',
    b'{"content": 7}',
    b'{"candidates": [null]}',
    b'{"candidates": "x"}',
    b"\xff\xff",
    b"[" * 100_000,
    b'{"error": 5}',
    b"data: {}\n\n",
]


@pytest.mark.parametrize("body", REPLIES)
def test_an_answer_that_is_none_is_transient_and_no_crash(vendor, body, virtual_time):
    harness = virtual_time.harness(vendor)

    async def post(url, headers, sent, timeout):
        from holdfast.adapters.llm.transport import HttpResponse

        return HttpResponse(200, {}, body)

    harness.model._transport.post = post
    with pytest.raises(Transient, match="does the base URL point to an API"):
        virtual_time.run(harness.ask())


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": None}}]},
        {
            "choices": [{"message": {"content": [{"text": "x"}]}, "finish_reason": 7}],
            "usage": {"prompt_tokens": "1"},
        },
        {"content": [], "usage": {"input_tokens": -5}},
        {"content": [7, {"type": "text"}]},
        {"candidates": [{"content": {"parts": [7, {"text": 5}]}, "finishReason": None}]},
        {"candidates": [{}], "usageMetadata": {"promptTokenCount": True}},
    ],
)
def test_replies_with_holes_are_empty_answers(body, virtual_time):
    name = {"choices": "openai", "content": "anthropic", "candidates": "google"}[next(iter(body))]
    protocol = virtual_time.harness(name).model._protocol
    reply = protocol.reply(body)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("", None, None)


def test_what_gemini_thought_is_not_part_of_the_answer_but_of_the_bill(virtual_time):
    reply = virtual_time.harness("google").model._protocol.reply(
        {
            "candidates": [
                {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "{}"}]}}
            ],
            "usageMetadata": {
                "promptTokenCount": 5,
                "candidatesTokenCount": 2,
                "thoughtsTokenCount": 40,
            },
        }
    )
    assert (reply.text, reply.output_tokens) == ("{}", 42)


def test_repairs_are_turns_that_alternate(vendor):
    async def story(harness: Harness) -> list[int]:
        await harness.ask()
        return [call.turns for call in harness.fake.calls]

    assert over_loopback(story, vendor, faults=in_turn("empty")) == [1, 3]


def test_a_local_server_is_not_looked_for_behind_a_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    async def story(harness: Harness) -> Claims:
        return await harness.ask()

    assert over_loopback(story) == ANSWER
