"""The filter language of Pub/Sub: what it means, and where it says that something is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigurationError
from holdfast.model.filters import MAX_FILTER, Filter

MESSAGES = {
    "plain": {},
    "transcription": {"worker-type": "transcription"},
    "empty": {"worker-type": ""},
    "english": {"lang": "en-GB", "iana.org/tag": "x"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"plain", "transcription", "empty", "english"}),
        ("NOT attributes:worker-type", {"plain", "english"}),
        ("-attributes:worker-type", {"plain", "english"}),
        ("attributes:worker-type", {"transcription", "empty"}),
        ('attributes.worker-type = "transcription"', {"transcription"}),
        ('attributes.worker-type="transcription"', {"transcription"}),
        ('attributes.worker-type != "transcription"', {"plain", "empty", "english"}),
        ('attributes."worker-type" = "transcription"', {"transcription"}),
        ('attributes:"iana.org/tag"', {"english"}),
        ('hasPrefix(attributes.lang, "en")', {"english"}),
        ('hasPrefix(attributes.lang, "")', {"english"}),
        ('NOT hasPrefix(attributes.lang, "en")', {"plain", "transcription", "empty"}),
        ('attributes:lang OR attributes.worker-type = ""', {"english", "empty"}),
        ("attributes:lang AND NOT attributes:worker-type", {"english"}),
        ("NOT (attributes:lang OR attributes:worker-type)", {"plain"}),
        ("NOT NOT attributes:lang", {"english"}),
        ('(attributes:lang AND attributes:"iana.org/tag") OR attributes.worker-type = ""',
         {"english", "empty"}),
        ('attributes.lang = "\\x65\\u006e\\055GB"', {"english"}),
    ],
)  # fmt: skip
def test_what_a_filter_wants(text, expected):
    assert {name for name, message in MESSAGES.items() if Filter(text).matches(message)} == expected


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("attributes", 10, "expected '.', found nothing more"),
        ("worker-type = 1", 0, "expected attributes"),
        ('attributes.a == "x"', 14, "expected a string"),
        ("attributes.a = x", 15, "expected a string"),
        ("attributes.a = 'x'", 15, "has no place"),
        ('attributes.a = "x', 15, "no end"),
        ('attributes.a = "\\q"', 15, "means nothing"),
        ('attributes.a = "\\ud800"', 15, "no character"),
        ("attributes:a AND attributes:b OR attributes:c", 30, "without parentheses"),
        ("attributes:a and attributes:b", 13, "expected AND, OR or the end"),
        ("(attributes:a", 13, "expected ')'"),
        ("attributes:a)", 12, "expected AND, OR or the end"),
        ("NOT", 3, "expected attributes"),
        ('hasPrefix(attributes.a "x")', 23, "expected ','"),
        ('hasPrefix(attributes:a, "x")', 20, "expected '.'"),
        ("attributes:", 11, "the name of an attribute"),
        ("attributes:a # no comments", 13, "has no place"),
    ],
)
def test_a_wrong_filter_says_where(text, at, reason):
    with pytest.raises(ConfigurationError) as error:
        Filter(text)
    message, excerpt, mark = str(error.value).split("\n")
    assert reason in message
    assert excerpt == f"  {text}"
    assert mark == " " * (at + 2) + "^"


def test_a_filter_is_as_long_as_in_pub_sub_at_most():
    value = "x" * (MAX_FILTER - len('attributes.a = ""'))
    assert Filter(f'attributes.a = "{value}"').matches({"a": value})
    with pytest.raises(ConfigurationError, match="at most 256 bytes"):
        Filter(f'attributes.a = "{value}x"')


def test_filters_that_are_written_alike_are_equal():
    assert Filter("NOT  attributes:a ") == Filter("NOT attributes:a")
    assert Filter('attributes.a = "x  y"') != Filter('attributes.a = "x y"')


KEYS = st.sampled_from(["a", "b-c", "d_1", "x.y/z"])
VALUES = st.sampled_from(["", "1", "12", 'q"uo\\te', "ü"])


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


LEAVES = st.one_of(
    KEYS.map(lambda key: (f"attributes:{_quoted(key)}", lambda m: key in m)),
    st.tuples(KEYS, VALUES).map(
        lambda pair: (
            f"attributes.{_quoted(pair[0])} = {_quoted(pair[1])}",
            lambda m: m.get(pair[0]) == pair[1],
        )
    ),
    st.tuples(KEYS, VALUES).map(
        lambda pair: (
            f"hasPrefix(attributes.{_quoted(pair[0])}, {_quoted(pair[1])})",
            lambda m: pair[0] in m and m[pair[0]].startswith(pair[1]),
        )
    ),
)


def _combined(parts):
    both = st.tuples(parts, parts)
    return st.one_of(
        parts.map(lambda p: (f"NOT ({p[0]})", lambda m: not p[1](m))),
        both.map(lambda p: (f"({p[0][0]}) AND ({p[1][0]})", lambda m: p[0][1](m) and p[1][1](m))),
        both.map(lambda p: (f"({p[0][0]}) OR ({p[1][0]})", lambda m: p[0][1](m) or p[1][1](m))),
    )


@given(st.recursive(LEAVES, _combined, max_leaves=4), st.dictionaries(KEYS, VALUES))
def test_any_filter_means_what_its_parts_mean(filter, message):
    text, meaning = filter
    if len(text.encode()) <= MAX_FILTER:
        assert Filter(text).matches(message) == meaning(message)


@given(st.text(alphabet='atribues:.="()-, NOTAD\\x!', max_size=60))
def test_any_text_is_a_filter_or_an_error_that_points_into_it(text):
    try:
        Filter(text).matches({"a": "b"})
    except ConfigurationError as error:
        mark = str(error).split("\n")[-1]
        assert len(mark) - 3 <= len(text)
