"""Comments are split where a reader would, and every span is exactly what was written."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.report.local.sentences import LONGEST, spans


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


LONG = (
    "The council should listen to the people who live here before it decides anything about "
    "the bridge."
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("We need buses. And trains.", ["We need buses. And trains."]),
        (
            f"{LONG} Schools need teachers more than tablets.",
            [LONG, "Schools need teachers more than tablets."],
        ),
        (f"{LONG} It does work.", [f"{LONG} It does work."]),
        (
            f"Mr. Smith of the U.S. office paid 3.5 million for it, e.g. for roads. {LONG}",
            ["Mr. Smith of the U.S. office paid 3.5 million for it, e.g. for roads.", LONG],
        ),
        (
            "- Build more homes for families now\n- Plant more trees along the big streets\n- "
            "Repair the bridge soon",
            [
                "Build more homes for families now",
                "Plant more trees along the big streets",
                "Repair the bridge soon",
            ],
        ),
        (
            "We have only one earth,we must protect our natural resources!Climate change has been "
            "proven by now!",
            [
                "We have only one earth,we must protect our natural resources!",
                "Climate change has been proven by now!",
            ],
        ),
        (
            "我覺得政府應該對運輸業設置公平的管制規則。每位司機都該投保乘客責任險，這樣乘客才有保障。",
            [
                "我覺得政府應該對運輸業設置公平的管制規則。",
                "每位司機都該投保乘客責任險，這樣乘客才有保障。",
            ],
        ),
        (
            "هل يجب أن نبني مدارس جديدة في هذه المدينة الكبيرة؟ نحن نحتاج إلى طرق أفضل وأشجار أكثر "
            "في كل حي.",
            [
                "هل يجب أن نبني مدارس جديدة في هذه المدينة الكبيرة؟",
                "نحن نحتاج إلى طرق أفضل وأشجار أكثر في كل حي.",
            ],
        ),
        (
            " . Hi, my name is Kim and I worry about the price of housing in this part of the "
            "city. ",
            None,
        ),
    ],
)
def test_sentences_of_many_kinds(text, parts):
    assert split(text) == (parts or [text.strip(" .") + "."])


def test_a_short_comment_stays_whole():
    assert split("Football sucks. Get rid of it.") == ["Football sucks. Get rid of it."]


def test_spoken_words_without_an_end_are_cut_where_a_clause_ends():
    text = "and so when they come home they have nowhere to go, " * 20
    parts = split(text)
    assert len(parts) > 3
    assert all(len(part) <= LONGEST for part in parts)
    assert all(part.startswith("and so") and part.endswith("to go") for part in parts)


def test_a_wall_of_letters_is_cut_all_the_same():
    assert max(map(len, split("a" * 5000))) <= LONGEST
    assert max(map(len, split("我" * 3000))) <= LONGEST


@pytest.mark.parametrize("text", ["", " ", "...", "!?", "😂", "\n\n"])
def test_a_text_without_a_word_has_no_sentence(text):
    assert split(text) == []


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=600) | st.text("ab. ,!?\n-我。，é1)", max_size=600))
def test_spans_are_in_order_never_overlap_and_keep_every_word(text):
    sentence_spans = spans(text)
    assert all(start < end for start, end in sentence_spans)
    assert all(span[1] <= other[0] for span, other in pairwise(sentence_spans))
    inside = {at for start, end in sentence_spans for at in range(start, end)}
    lost = "".join(character for at, character in enumerate(text) if at not in inside)
    assert not any(character.isalpha() and character.isascii() for character in lost)
