"""A quote is found as the comment's own characters, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.quotes import locate

TEXT = (
    "I  don’t think so.\nThe market — our market! — is dying; Nobody “cares” about it any more… "
    "私は梟を愛しています。 Ça va."
)


def located(quote: str, text: str = TEXT) -> str | None:
    span = locate(quote, text)
    return text[span.start : span.end] if span else None


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("The market — our market! — is dying", "The market — our market! — is dying"),
        ("the market, our market, is dying", "The market — our market! — is dying"),
        ("I don't think so. The market", "I  don’t think so.\nThe market"),
        ('Nobody "cares" about it', "Nobody “cares” about it"),
        ("  is dying ", "is dying"),
        ("The market […] is dying", "The market — our market! — is dying"),
        ("The market ... Nobody", "The market — our market! — is dying; Nobody"),
        ("梟を愛しています", "梟を愛しています"),
        ("ca va.", "Ça va."),
        ("i DON'T think so", "I  don’t think so."),
    ],
)
def test_a_nearly_exact_quote_is_found_in_the_comments_own_words(quote, words):
    assert located(quote) == words


@pytest.mark.parametrize(
    "quote", ["", "   ", "?", "The council is dying", "market our the", "dying […] The market"]
)
def test_what_is_not_there_is_not_found(quote):
    assert located(quote) is None


def test_two_far_ends_of_a_long_comment_are_no_quote():
    text = "We need trees. " + "This is about something else entirely. " * 40 + "That is all."
    assert located("We need trees. […] That is all.", text) is None


def test_a_known_place_tells_two_equal_quotes_apart():
    assert locate("no", "no, no, no", 4) == (4, 6)


@given(st.text(max_size=60), st.data())
def test_every_part_of_a_text_is_found_somewhere_in_it(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    part = text[start:end]
    span = locate(part, text)
    if part.strip():
        assert span is not None
        assert text[span.start : span.end] == part.strip()
    else:
        assert span is None


@given(st.text(max_size=80), st.text(max_size=30))
def test_whatever_is_found_is_an_exact_part_of_the_text(text, quote):
    span = locate(quote, text)
    if span is not None:
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip() == text[span.start : span.end]
