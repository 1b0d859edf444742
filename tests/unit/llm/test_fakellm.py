"""The fake itself: it refuses what the vendors refuse, else tests against it would show nothing."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.llm.harness import BRAIN, KEY, Claims, FakeContext, Harness, over_loopback

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.anthropic import Anthropic
from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.llm.google import Google
from holdfast.adapters.llm.openai import OpenAI
from holdfast.adapters.llm.protocol import Prompt
from holdfast.adapters.llm.schema import schema_of
from holdfast.ports.language_model import Question
from holdfast.testing.fakellm import (
    KINDS,
    Call,
    FakeLLM,
    Fault,
    Minimal,
    by_chance,
    first_tries,
    in_turn,
)

PROTOCOLS = {"openai": OpenAI("m"), "anthropic": Anthropic("m"), "google": Google("m")}
Change = Callable[[Any], object]


def verdict(
    vendor: str, change: Change = lambda data: None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Status and text that a request gets, changed from what our client would send."""
    prompt = Prompt("claims", "system", ("one", "two", "three"), schema_of(Claims, "claims"), 100)
    request = PROTOCOLS[vendor].request(prompt, ApiKey(KEY, "X"))
    data = json.loads(request.body)
    change(data)
    fake = FakeLLM(BRAIN, key=KEY)
    path = fake.protocol(vendor).base + request.path
    all_headers = {"content-type": "application/json", **request.headers, **(headers or {})}
    response: Any = asyncio.run(fake.respond(path, all_headers, json.dumps(data).encode()))
    return response.status, response.body.decode()


def test_what_the_client_sends_is_right(vendor):
    assert verdict(vendor)[0] == 200


def _schema(data: Any) -> Any:
    return data["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("model"),
        lambda d: d.pop("messages"),
        lambda d: d["messages"].pop(0),
        lambda d: d["messages"].reverse(),
        lambda d: d["messages"][1].update(content=""),
        lambda d: d["messages"][1].update(name="x"),
        lambda d: d.update(max_tokens=5),
        lambda d: d.pop("max_completion_tokens"),
        lambda d: d.update(max_completion_tokens=0),
        lambda d: d.update(temperatur=0),
        lambda d: d.update(stream=True),
        lambda d: d["response_format"].update(type="object"),
        lambda d: d["response_format"]["json_schema"].pop("strict"),
        lambda d: d["response_format"]["json_schema"].update(name="two words"),
        lambda d: d.pop("response_format"),
        lambda d: d.update(response_format={"type": "json_object"}),
        lambda d: _schema(d).pop("additionalProperties"),
        lambda d: _schema(d).update(required=["claims"]),
        lambda d: _schema(d)["properties"]["claims"].update(minItems=1),
        lambda d: _schema(d)["properties"]["claims"].pop("items"),
        lambda d: _schema(d)["properties"]["claims"].update({"$ref": "#/$defs/x"}),
        lambda d: _schema(d)["properties"]["note"].pop("anyOf"),
        lambda d: _schema(d).update(type="array"),
    ],
)
def test_openai_refuses(change):
    status, message = verdict("openai", change)
    assert status == 400, message
    assert json.loads(message)["error"]["message"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("max_tokens"),
        lambda d: d.pop("tool_choice"),
        lambda d: d["tool_choice"].update(name="other"),
        lambda d: d["tools"].append(d["tools"][0]),
        lambda d: d["tools"][0].update(name="two words"),
        lambda d: d["tools"][0]["input_schema"].update(type="array"),
        lambda d: d["system"][0].pop("cache_control"),
        lambda d: d["system"][0].update(text=""),
        lambda d: d.update(system="text"),
        lambda d: d["messages"].pop(),
        lambda d: d["messages"][0].update(role="assistant"),
        lambda d: d["messages"][1].update(content=" "),
        lambda d: d.update(max_output=5),
    ],
)
def test_anthropic_refuses(change):
    status, message = verdict("anthropic", change)
    assert status == 400, message
    assert json.loads(message)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("contents"),
        lambda d: d["contents"].pop(),
        lambda d: d["contents"][1].update(role="assistant"),
        lambda d: d["contents"][0].update(parts=[{"text": ""}]),
        lambda d: d["contents"][0].pop("parts"),
        lambda d: d.pop("systemInstruction"),
        lambda d: d["generationConfig"].pop("responseMimeType"),
        lambda d: d["generationConfig"].pop("responseJsonSchema"),
        lambda d: d["generationConfig"].update(responseSchema={"type": "object"}),
        lambda d: d["generationConfig"].pop("maxOutputTokens"),
        lambda d: d["generationConfig"].update(max_tokens=5),
        lambda d: d.update(tools=[]),
    ],
)
def test_google_refuses(change):
    status, message = verdict("google", change)
    assert status == 400, message
    assert json.loads(message)["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("vendor", "header"),
    [("openai", "authorization"), ("anthropic", "x-api-key"), ("google", "x-goog-api-key")],
)
@pytest.mark.parametrize("value", ["", "wrong", "Bearer wrong"])
def test_a_request_without_the_right_key_is_refused(vendor, header, value):
    assert verdict(vendor, headers={header: value})[0] == 401


def test_headers_are_looked_at():
    assert verdict("anthropic", headers={"anthropic-version": "2020-01-01"})[0] == 400
    assert verdict("openai", headers={"content-type": "text/plain"})[0] == 415


def test_a_key_in_the_url_is_refused():
    async def story(harness: Harness) -> int:
        path = "/google/v1beta/models/m:generateContent?key=x"
        headers = {"content-type": "application/json", "x-goog-api-key": KEY}
        response: Any = await harness.fake.respond(path, headers, b"{}")
        return response.status

    assert over_loopback(story) == 400


def test_a_brain_that_fails_is_told():
    class Broken:
        def answer(self, task, system, text, schema):
            raise ZeroDivisionError("thinking hurts")

    async def story(harness: Harness) -> list[str]:
        with pytest.raises(Exception, match="500: the brain failed"):
            await harness.ask()
        return harness.fake.stats()["errors"]

    assert over_loopback(story, brain=Broken()) == ["ZeroDivisionError('thinking hurts')"]


def test_sixty_four_are_in_flight_and_no_more(vendor):
    async def story(harness: Harness) -> Harness:
        await asyncio.gather(
            *(harness.ask(Question("s", f"text {n}", "claims")) for n in range(200))
        )
        return harness

    harness = over_loopback(story, vendor, latency=0.1)
    assert harness.fake.max_in_flight == 64
    assert len({call.text for call in harness.fake.calls}) == 200
    assert harness.fake.stats()["tasks"] == {"claims": 200}


# --- plans of faults ------------------------------------------------------------------------------


def call(text: str, tries: int = 1) -> Call:
    return Call(0, "openai", "claims", "", text, 1, tries)


def test_chance_is_the_same_for_the_same_seed_in_any_order():
    texts = [f"text {n}" for n in range(500)]
    plan = by_chance(7, cut=0.1, malformed=0.2)
    faults_by_text = {text: plan(call(text)) for text in texts}
    again = by_chance(7, cut=0.1, malformed=0.2)
    assert {text: again(call(text)) for text in reversed(texts)} == faults_by_text
    other = by_chance(8, cut=0.1, malformed=0.2)
    assert {text: other(call(text)) for text in texts} != faults_by_text
    kinds = [fault.kind if fault else "" for fault in faults_by_text.values()]
    assert 25 < kinds.count("cut") < 80
    assert 60 < kinds.count("malformed") < 150


def test_plans_in_turn_and_by_tries():
    plan = in_turn("cut", None, Fault("rate_limit", 5))
    assert [plan(call("x")) for _ in range(4)] == [Fault("cut"), None, Fault("rate_limit", 5), None]
    tries = first_tries(2, "error")
    assert [tries(call("x", n)) for n in (1, 2, 3)] == [Fault("error"), Fault("error"), None]


def test_an_unknown_fault_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="'explode' is unknown: there are rate_limit"):
        Fault("explode")
    assert len(set(KINDS)) == len(KINDS)


# --- the program ----------------------------------------------------------------------------------


def test_the_server_as_a_program(vendor):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "holdfast.testing.fakellm",
            "--brain",
            "minimal",
            "--fault",
            "fenced=1",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("serving at ").strip()
        addresses = [
            process.stdout.readline().strip().removeprefix("HOLDFAST_LLM=") for _ in range(3)
        ]
        address = next(entry for entry in addresses if entry.startswith(vendor))

        async def story() -> Claims:
            model = ModelClient(parse(address), environment={})
            try:
                return await model.ask(Question("s", "t", "claims"), Claims, FakeContext())
            finally:
                await model.aclose()

        assert asyncio.run(story()) == Claims(claims=[], note=None)
        with urllib.request.urlopen(f"{url}/stats") as response:
            stats = json.load(response)
        assert (stats["calls"], stats["faults"]) == (1, {"fenced": 1})
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_other_paths_and_methods_are_not_served():
    async def story() -> list[int]:
        statuses = []
        async with FakeLLM(Minimal()) as fake:
            for request in ("GET / HTTP/1.1", "POST /v2/x HTTP/1.1"):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", int(fake.url().rsplit(":", 1)[1])
                )
                writer.write(f"{request}\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode())
                statuses.append(int((await reader.readline()).split()[1]))
                writer.close()
            return statuses

    assert asyncio.run(story()) == [405, 404]
