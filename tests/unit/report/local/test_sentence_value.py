"""Greetings, tests and strings of letters make no claim; opinions do, however short."""

import pytest

from holdfast.apps.report.local.sentence_value import claim_score, is_filler

NOTHING = """Hello.|Thank you!|yes|No.|Ok|I agree|Yes I agree|maybe|idk|I don't get it|Really?|test 24234234|test aisdfj
asdfasdf|iausdhfiuhsdf|dfsfdsgsdfgdfs dfg dfsg sdfgsdfg|test October 17
😂|!|443343|https://example.org/a/b|a@b.org|你好|好酷喔|謝謝
Danke für die Umfrage.|Merci !|aaaaaaaaaaaaaaa|This is a statement.|buttonActivebuttonActivebuttonActivebuttonActive"""

SOMETHING = """Football sucks.|Trump is evil|Ban guns|I love cats|Health care for all!|the sky is blue
沒保障。沒保險⋯|私は梟を愛しています|Die Mieten sind zu hoch|Les loyers sont trop élevés|I am a Democrat
NFL is dangerous|Черепахи очень милые|tarvitsemme lisää puita|We test drivers too late and too seldom"""


def lines(text: str) -> list[str]:
    return [each for line in text.split("\n") for each in line.split("|")]


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
