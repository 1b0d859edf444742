"""Greetings, tests and strings of letters make no claim; opinions do, however short."""

import pytest

from holdfast.apps.report.local.sentence_value import (
    claim_score,
    is_filler,
    is_sentence,
    stands_alone,
)

NOTHING = """Hello.|Thank you!|yes|No.|Ok|I agree|Yes I agree|maybe|idk|I don't get it|Really?
test 24234234|test aisdfj
asdfasdf|iausdhfiuhsdf|dfsfdsgsdfgdfs dfg dfsg sdfgsdfg|test October 17
😂|!|443343|https://example.org/a/b|a@b.org|你好|好酷喔|謝謝
Danke für die Umfrage.|Merci !|aaaaaaaaaaaaaaa|This is a statement.
buttonActivebuttonActivebuttonActivebuttonActive"""

SOMETHING = """Football sucks.|Trump is evil|Ban guns|I love cats
Health care for all!|the sky is blue
沒保障。沒保險⋯|私は梟を愛しています|Die Mieten sind zu hoch|Les loyers sont trop élevés|I am a Democrat
NFL is dangerous|Черепахи очень милые|tarvitsemme lisää puita
We test drivers too late and too seldom"""


def lines(text: str) -> list[str]:
    return [entry for line in text.split("\n") for entry in line.split("|")]


@pytest.mark.parametrize("text", lines(NOTHING))
def test_it_says_nothing(text):
    assert is_filler(text)


@pytest.mark.parametrize("text", lines(SOMETHING))
def test_it_says_something(text):
    assert not is_filler(text)


def test_an_opinion_weighs_more_than_a_tale_or_a_question():
    opinion = "We need more counsellors because the schools can't cope."
    assert claim_score(opinion) > claim_score("When I was a boy he said he was there, you know.")
    assert claim_score(opinion) > claim_score("Where are all the counsellors in our schools?")


@pytest.mark.parametrize(
    "text",
    [
        "Ownership of technology that they've never been given.",
        "Where to go when I need to go places. Right. It was a community.",
        "I know somebody who did it, so I.",
        "Technology is a challenge, I, it is hard.",
        "Most of the wor worst things happen in the dark.",
        "because nobody asked us.",
        "The same issue is going on in.",
    ],
)
def test_speech_that_breaks_off_is_no_sentence(text):
    assert not is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "We have to free our minds.",
        "Prison is not their home.",
        "The smoke and mirrors need to stop.",
        "計程車司機的素質不佳。",
    ],
)
def test_whole_spoken_sentences_are_sentences(text):
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "I played football in high school.",
        "We didn't get that type of help that we needed.",
        "I agree. The small business will need to make poverty fashionable.",
        "Football will get past this, whatever happens.",
        "Our children, our parents, our democracy, and everything else.",
        "Should we really be normalizing neurologists on site at games.",
        "The Michigan Fair Chance access to Housing Acts.",
        "Your house been empty for over 30 years.",
        "See, oh, okay, well I can find housing here.",
    ],
)
def test_what_needs_its_surroundings_describes_nothing(text):
    assert not stands_alone(text)


@pytest.mark.parametrize(
    "text",
    ["Health care should be available to all.", "We need to get the money out of politics."],
)
def test_a_statement_that_stands_alone(text):
    assert stands_alone(text)


SCRAPS = """Tools to understand their mental health.|With, maybe it's another alpha there.
Technology is a ch a challenge for anybody.|Capture, create a whole new, create a whole new thing.
The concern is the kids, and it should be there are today or tomorrow."""


@pytest.mark.parametrize("text", lines(SCRAPS))
def test_speech_that_breaks_off_or_has_no_verb_is_no_sentence(text):
    assert not is_sentence(text)
