"""Masking takes time in proportion to the length of a text, whatever is in it: error messages and
messages of other systems come from anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from holdfast.model.secrecy import masked
from holdfast.model.secret_fields import masked_bytes, without

LENGTH = 300_000
MOST_SECONDS = 5.0
"""Of processor time; it takes a tenth of a second or two. What grows with the square takes hours."""

PIECES = [
    *("a", "a-", "a.", "-", "abc ", '"', '\\"', "\\", '":', '"": ', '{"a": "b"}', '"password": "'),
    *("://", "://a:", "://a@", "https://", "http:", "http:a:", "https://a:b@c ", "@", "?", "?a"),
    *("password", "password ", "password:", "password: ", "password: a ", "password = ", "a: b = "),
    *("token", "token: ", "token:a", "bearer ", "sk-", "sk-a ", "eyJ", "-eyJaaaaaaaa", "&password"),
    *("hfk_aaaaaaaaaaaa_", "\n", " \n", "@\n", "://a:\n"),
]
BEGINNINGS = ("", '"', "://", "http:", "password", "password:", 'password: "', "eyJ", "?")


@pytest.mark.parametrize("mask", [masked, lambda text: masked_bytes(text.encode())])
@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_a_long_text_is_masked_in_no_time(piece: str, mask: Callable[[str], object]) -> None:
    for beginning in BEGINNINGS:
        text = beginning + piece * (LENGTH // len(BEGINNINGS) // len(piece))
        assert seconds(lambda text=text: mask(text)) < MOST_SECONDS


def test_a_text_that_does_not_end_is_masked_in_no_time() -> None:
    body = ('"' + '\\"' * LENGTH).encode()
    assert seconds(lambda: without(body, ["hunter2"])) < MOST_SECONDS


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my-openai-api-key = hunter2, a", "my-openai-api-key = ***, a"),
        ("db.password: str = 'hunter2'", "db.password: str = ***"),
        ("x-session-token: abcdefghijkl", "x-session-token: ***"),
        ("Bearer-eyJhbGciOiJ9.e30.abc at", "Bearer-*** at"),
        ("eyJhbGciOiJ9 alone", "eyJhbGciOiJ9 alone"),
        ("https://ada:pass@word@host/a @b", "https://ada:***@b"),
        ("https://ada@host/ and no login", "https://ada@host/ and no login"),
        ("a@b\nhttps://ada:hunter2@host/x", "a@b\nhttps://ada:***@host/x"),
    ],
)
def test_what_stands_around_a_secret_stays(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"password": "hunter2"',
        b'it"s {"a": 1, "password" : "hunter2", ',
        b'{"password": "hunter2',
        b'{"password": "hunter2\\',
        b'{"my\\"password": "hunter2"',
    ],
)
def test_a_secret_is_masked_in_what_is_no_json(body: bytes) -> None:
    assert b"hunter2" not in masked_bytes(body)
