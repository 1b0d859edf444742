"""What a status means: who has to do something, and when to come back."""

import json

import pytest

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.error_responses import error_for, retry_after
from holdfast.adapters.llm.errors import BadRequest, RateLimited
from holdfast.adapters.llm.transport import HttpResponse
from holdfast.errors import ConfigurationError, Pause, Transient
from holdfast.ports.language_model import TooLong

ADDRESS = parse("openai:gpt-4o-mini")
KEY = ApiKey("sk-canary-123456", "OPENAI_API_KEY")
NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def meaning(status: int, message: str = "because", headers=None, **more):
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return error_for(HttpResponse(status, headers or {}, body), ADDRESS, KEY, NOW)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, ConfigurationError),
        (402, Pause),
        (403, ConfigurationError),
        (404, ConfigurationError),
        (408, Transient),
        (409, Transient),
        (413, TooLong),
        (418, BadRequest),
        (422, BadRequest),
        (425, Transient),
        (429, RateLimited),
        (500, Transient),
        (502, Transient),
        (503, RateLimited),
        (504, Transient),
        (529, RateLimited),
        (599, Transient),
        (301, ConfigurationError),
        (204, ConfigurationError),
    ],
)
def test_every_status_has_one_meaning(status, kind):
    assert type(meaning(status)) is kind


@pytest.mark.parametrize(
    ("status", "message", "more", "kind"),
    [
        (
            429,
            "You exceeded your current quota, please check your plan",
            {"code": "insufficient_quota"},
            Pause,
        ),
        (400, "Your credit balance is too low to access the API.", {}, Pause),
        (400, "API key not valid. Please pass a valid API key.", {}, ConfigurationError),
        (
            400,
            "This model's maximum context length is 4096 tokens. However, you requested 5000",
            {},
            TooLong,
        ),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", {}, TooLong),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
            {},
            TooLong,
        ),
        (
            400,
            "max_tokens is too large: 32768. This model supports at most 16384 completion tokens",
            {},
            TooLong,
        ),
        (
            400,
            "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for m",
            {},
            TooLong,
        ),
        (400, "the request exceeds the available context size", {}, TooLong),
        (400, "Unsupported parameter: 'max_tokens'", {"param": "max_tokens"}, BadRequest),
    ],
)
def test_what_the_vendor_says_decides_where_the_status_does_not(status, message, more, kind):
    assert type(meaning(status, message, **more)) is kind


def test_errors_name_the_model_the_status_and_what_to_do():
    assert str(meaning(500)) == "openai:gpt-4o-mini answered 500: because"
    assert "OPENAI_API_KEY" in str(meaning(401))
    assert "check that it is right" in str(meaning(401))
    assert "https://api.openai.com/v1 (404: because): check the name of the model" in str(
        meaning(404)
    )
    assert "top it up and resume the run" in str(meaning(402))
    moved = meaning(308, headers={"location": "https://elsewhere/v1"})
    assert "it redirects to https://elsewhere/v1" in str(moved)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503])
def test_a_key_that_the_vendor_repeats_goes_no_further(status):
    for text in (
        "Incorrect key sk-canary-123456.",
        "sk-canary***56 is wrong",
        "Bearer sk-canary-123456 refused",
    ):
        assert "canary" not in str(meaning(status, text))
        plain = error_for(HttpResponse(status, {}, text.encode()), ADDRESS, KEY, NOW)
        assert "canary" not in str(plain)
        assert "canary" not in getattr(plain, "objection", "")


def test_a_local_server_that_wants_a_key_is_told_apart_from_one_that_refuses_it():
    local = parse("http://localhost:1/v1?model=m")
    error = error_for(HttpResponse(401, {}, b""), local, ApiKey("", ""), NOW)
    assert "wants a key (401)" in str(error)
    assert "?key=env:NAME" in str(error)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "model \'x\' not loaded"}', "model 'x' not loaded"),
        (b'{"object": "error", "message": "bad thing"}', "bad thing"),
        (b'{"detail": "Unprocessable"}', "Unprocessable"),
        (b'[{"error": {"code": 400, "message": "in a list"}}]', "in a list"),
        (b"just words\nover lines", "just words over lines"),
        (b"<html><h1>Bad</h1></html>", "it gave no reason"),
        (b"", "it gave no reason"),
        (b"\xff\xfe{", "\ufffd\ufffd{"),
        (b'{"error": {"message": 7}}', "it gave no reason"),
        (b'{"error": {"message": "' + b"x" * 999 + b'"}}', "x" * 299 + "…"),
    ],
)
def test_the_vendors_own_words_are_found_and_shortened(body, message):
    assert (
        str(error_for(HttpResponse(422, {}, body), ADDRESS, KEY, NOW))
        == f"openai:gpt-4o-mini answered 422: {message}"
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        (
            {
                "retry-after": "Tue, 14 Nov 2023 22:13:50 GMT",
                "date": "Tue, 14 Nov 2023 22:13:45 GMT",
            },
            5.0,
        ),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_the_time_to_wait_is_read_from_the_headers(headers, seconds):
    assert retry_after(headers, None, NOW) == seconds


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        ([{"@type": "type.googleapis.com/google.rpc.Help"}, {"retryDelay": "17s"}], 17.0),
        ([{"retryDelay": "0.25s"}], 0.25),
        ([{"retryDelay": "soon"}], None),
        ("nothing", None),
        ([7], None),
    ],
)
def test_google_puts_the_time_to_wait_into_the_body(details, seconds):
    assert retry_after({}, {"error": {"details": details}}, NOW) == seconds


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_what_may_pass_says_when_to_come_back(status):
    assert meaning(status, headers={"retry-after": "3"}).retry_after == 3.0
