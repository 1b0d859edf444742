"""`HOLDFAST_LLM`: what can be said, and what is refused without repeating a secret."""

import pytest

from holdfast.adapters.llm.address import ModelAddress, parse
from holdfast.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "vendor", "model", "base_url", "variables"),
    [
        (
            "openai:gpt-4o-mini",
            "openai",
            "gpt-4o-mini",
            "https://api.openai.com/v1",
            ("OPENAI_API_KEY",),
        ),
        (
            " anthropic:claude-haiku-4-5 ",
            "anthropic",
            "claude-haiku-4-5",
            "https://api.anthropic.com/v1",
            ("ANTHROPIC_API_KEY",),
        ),
        (
            "google:gemini-2.5-flash",
            "google",
            "gemini-2.5-flash",
            "https://generativelanguage.googleapis.com/v1beta",
            ("GOOGLE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ),
        (
            "openai:meta/llama-3:8b?base_url=https://api.example.org/v1/&key=env:MY_KEY",
            "openai",
            "meta/llama-3:8b",
            "https://api.example.org/v1",
            ("MY_KEY",),
        ),
        (
            "http://localhost:11434/v1?model=llama3",
            "openai",
            "llama3",
            "http://localhost:11434/v1",
            ("OPENAI_API_KEY",),
        ),
    ],
)
def test_an_address_names_vendor_model_and_place(text, vendor, model, base_url, variables):
    address = parse(text)
    assert (address.vendor, address.model, address.base_url) == (vendor, model, base_url)
    assert address.key_variables == variables
    assert address.name == f"{vendor}:{model}"


def test_limits_and_prices_are_parameters():
    address = parse(
        "openai:m?in_flight=8&rpm=500&tpm=200000&timeout=30.5&input_price=0.15&output_price=0"
    )
    assert address == ModelAddress(
        "openai", "m", "https://api.openai.com/v1", "", 8, 500, 200_000, 30.5, 0.15, 0.0
    )


def test_without_parameters_64_are_in_flight_and_each_has_two_minutes():
    address = parse("openai:m")
    assert (address.in_flight, address.timeout, address.requests_per_minute) == (64, 120.0, None)


@pytest.mark.parametrize(
    ("host", "needed"),
    [
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://192.168.1.5:8000/v1", False),
        ("http://ollama:11434/v1", False),
        ("http://gpu.local/v1", False),
        ("https://api.groq.com/openai/v1", True),
        ("https://8.8.8.8/v1", True),
    ],
)
def test_a_local_server_needs_no_key(host, needed):
    assert parse(f"{host}?model=m").needs_key is needed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "openai:MODEL, anthropic:MODEL, google:MODEL"),
        ("gpt-4o", "names no vendor"),
        ("mistral:large", "'mistral' is unknown"),
        ("openai:", "needs the name of a model"),
        ("openai:a b", "needs the name of a model"),
        ("google:../../x", "needs the name of a model"),
        ("http://localhost:1/v1", "needs the name of a model"),
        (
            "openai:m?temperature=1",
            "unknown parameter 'temperature'; known are base_url, in_flight, input_price, key",
        ),
        ("openai:m?api_key=x", "keys stay in the environment"),
        ("openai:m?rpm=0", "rpm='0'"),
        ("openai:m?rpm=many", "rpm='many'"),
        ("openai:m?timeout=inf", "timeout='inf'"),
        ("openai:m?input_price=nan", "input_price='nan'"),
        ("openai:m?rpm=1&rpm=2", "twice"),
        ("openai:m?base_url=ftp://x/v1", "has to look like"),
        ("openai:m?base_url=http://localhost:99999/v1", "has to look like"),
        ("openai:m?base_url=http://localhost/v1%3Fkey=1", "has to look like"),
        ("http://api.example.org/v1?model=m", "use https"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_known(text, message):
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "sk-canary-123456",
        "openai:m?key=sk-canary-123456",
        "openai:m?api_key=sk-canary-123456",
        "openai:m?base_url=https://user:sk-canary-123456@host/v1",
        "https://sk-canary-123456@host/v1?model=m",
        "openai:m?base_url=https://host/v1%3Fkey=sk-canary-123456",
    ],
)
def test_a_key_in_the_address_is_refused_and_not_repeated(text):
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert "canary" not in str(caught.value)
