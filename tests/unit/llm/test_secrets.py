"""The key: where it comes from, and that it goes nowhere but into its header."""

import asyncio
import copy
import pickle

import pytest
from tests.unit.llm.harness import QUESTION, Claims, FakeContext

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.api_key import ApiKey, read_key
from holdfast.adapters.llm.client import ModelClient
from holdfast.errors import ConfigurationError

SECRET = "sk-canary-4f1d9c2b7a"


@pytest.mark.parametrize(
    ("address", "environment", "variable"),
    [
        ("openai:m", {"OPENAI_API_KEY": SECRET}, "OPENAI_API_KEY"),
        (
            "anthropic:m",
            {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": f" {SECRET}\n"},
            "ANTHROPIC_API_KEY",
        ),
        ("google:m", {"GOOGLE_API_KEY": SECRET}, "GOOGLE_API_KEY"),
        ("google:m", {"GOOGLE_API_KEY": "x", "GEMINI_API_KEY": SECRET}, "GEMINI_API_KEY"),
        ("google:m", {"GEMINI_API_KEY": "x", "GOOGLE_AI_API_KEY": SECRET}, "GOOGLE_AI_API_KEY"),
        ("openai:m?key=env:MINE", {"OPENAI_API_KEY": "x", "MINE": SECRET}, "MINE"),
        ("http://localhost:1/v1?model=m&key=env:MINE", {"MINE": SECRET}, "MINE"),
    ],
)
def test_a_key_is_read_from_the_environment(address, environment, variable):
    key = read_key(parse(address), environment)
    assert (key.reveal(), key.variable) == (SECRET, variable)


def test_a_key_of_the_vendor_is_not_sent_to_a_local_server():
    assert not read_key(parse("http://localhost:11434/v1?model=m"), {"OPENAI_API_KEY": SECRET})


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("openai:m", "OPENAI_API_KEY"),
        ("google:m", "GOOGLE_AI_API_KEY or GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openai:m?key=env:MINE", "MINE"),
        ("https://api.groq.com/openai/v1?model=m", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named_before_anything_is_sent(address, message):
    with pytest.raises(
        ConfigurationError, match=f"needs a key: put it into the environment variable {message}"
    ):
        asyncio.run(_ask(ModelClient(parse(address), environment={"OPENAI_API_KEY": " "})))


async def _ask(model: ModelClient) -> None:
    await model.ask(QUESTION, Claims, FakeContext())


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "naïve", "tab\tbed"])
def test_what_can_not_be_a_key_is_refused_without_repeating_it(value):
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY holds blanks") as caught:
        read_key(parse("openai:m"), {"OPENAI_API_KEY": value})
    assert value not in str(caught.value)


def test_a_key_prints_as_nothing_and_is_written_nowhere():
    key = ApiKey(SECRET, "OPENAI_API_KEY")
    assert (
        f"{key} {key!r} {[key]}" == "Key(OPENAI_API_KEY) Key(OPENAI_API_KEY) [Key(OPENAI_API_KEY)]"
    )
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not written anywhere"):
            write(key)


@pytest.mark.parametrize(
    "text",
    [
        f"your key {SECRET} is wrong",
        "key sk-canary-****c2b7a",
        "Bearer canary12345",
        "AIzacanary1234567890",
    ],
)
def test_texts_of_others_are_cleaned_of_keys(text):
    assert "canary" not in ApiKey(SECRET, "X").hide_in(text)


def test_a_model_can_tell_prices_without_a_key():
    assert ModelClient(parse("openai:gpt-4o-mini"), environment={}).price(
        1_000_000, 0
    ) == pytest.approx(0.15)
