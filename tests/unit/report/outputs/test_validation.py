"""A sound report has no problems, and every way of being wrong is noticed and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.apps.report.model.comment import Fate, Row
from holdfast.apps.report.model.document import (
    LossReason,
    Quote,
    Report,
    ReportTopic,
    Stage,
    VoteCount,
)
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.outputs.validation import problems

Change = Callable[[Report], Report]


def test_a_sound_report_has_no_problems(report: Report, build: Callable[..., Report]) -> None:
    assert problems(report) == []
    assert problems(build([], [])) == []


def topic(report: Report, **changes: Any) -> Report:
    first, *others = report.topics
    return replace(report, topics=(replace(first, **changes), *others))


def claim(report: Report, **changes: Any) -> Report:
    first = report.topics[0].subtopics[0]
    single, *others = first.claims
    return topic(report, subtopics=(replace(first, claims=(replace(single, **changes), *others)),))


def quote(report: Report, **changes: Any) -> Report:
    first, *others = report.topics[0].subtopics[0].claims[0].quotes
    return claim(report, quotes=(replace(first, **changes), *others))


def another(report: Report) -> Quote:
    return report.topics[1].subtopics[0].claims[0].quotes[0]


def crux(report: Report, **changes: Any) -> Report:
    return replace(report, cruxes=(replace(report.cruxes[0], **changes),))


def matrix(report: Report, **changes: Any) -> Report:
    return replace(report, matrix=replace(report.matrix, **changes))


def counts(report: Report, **changes: Any) -> Report:
    return replace(report, counts=replace(report.counts, **changes))


def coverage(report: Report, **changes: Any) -> Report:
    return replace(report, coverage=replace(report.coverage, **changes))


def stage(report: Report, name: str, **changes: Any) -> Report:
    stages = tuple(
        replace(entry, **changes) if entry.name == name else entry for entry in report.funnel
    )
    return replace(report, funnel=stages)


def other_first(report: Report) -> tuple[ReportTopic, ...]:
    return tuple(reversed(report.topics))


WRONG: list[tuple[str, Change]] = [
    ("is not what comment '1' says", lambda r: quote(r, start=1)),
    ("is not what comment '1' says", lambda r: quote(r, text="Close the streets")),
    ("is not what comment '1' says", lambda r: quote(r, text="", start=3, end=3)),
    ("is not what comment '1' says", lambda r: quote(r, start=-38)),
    ("comment '99', which is not in the report", lambda r: quote(r, comment="99")),
    ("another speaker or row", lambda r: quote(r, speaker="Zoe")),
    ("another speaker or row", lambda r: quote(r, row=9)),
    ("quote id .* more than once", lambda r: quote(r, id=another(r).id)),
    ("claim id 'g-2' is used more than once", lambda r: claim(r, id="g-2")),
    (
        "comment id '1' is used more than once",
        lambda r: replace(r, comments=(*r.comments, r.comments[0])),
    ),
    ("topic id 'other' is used more than once", lambda r: topic(r, id="other")),
    ("extracted claim .* more than one place", lambda r: quote(r, claim=another(r).claim)),
    ("has the number 7 but is claim 1", lambda r: claim(r, number=7)),
    ("rests on no quote", lambda r: claim(r, quotes=())),
    ("says nothing", lambda r: claim(r, statement=" ")),
    ("Claim 1 says 3 people, but 2 are quoted", lambda r: claim(r, people=3)),
    (
        "sentence of the findings rests on nothing",
        lambda r: replace(r, findings=(Sentence("All is well.", ()),)),
    ),
    (
        "sentence of the findings cites claim 'g-9'",
        lambda r: replace(r, findings=(Sentence("Well.", ("g-9",)),)),
    ),
    (
        "summary of topic traffic cites claim 'g-3'",
        lambda r: topic(r, summary=(Sentence("Trees.", ("g-3",)),)),
    ),
    ("not the last one", lambda r: replace(r, topics=other_first(r))),
    ("says 9 comments, but there are 6", lambda r: counts(r, comments=9)),
    ("says 9 people, but there are 6", lambda r: counts(r, people=9)),
    ("says 3 claims, but there are 4", lambda r: counts(r, claims=3)),
    ("says 7 quotes, but there are 6", lambda r: counts(r, quotes=7)),
    ("says 7 extracted, but there are 6", lambda r: counts(r, extracted=7)),
    ("says 3 topics, but there are 2", lambda r: counts(r, topics=3)),
    ("says 5 subtopics, but there are 2", lambda r: counts(r, subtopics=5)),
    ("Topic traffic says 4 claims, but has 2", lambda r: topic(r, claims=4)),
    ("Topic traffic says 4 people, but 3 are quoted", lambda r: topic(r, people=4)),
    ("Topic traffic says 1 comments, but quotes 3", lambda r: topic(r, comments=1)),
    ("Topic traffic says controversy None", lambda r: topic(r, controversy=None)),
    (
        "no stage 'speaking'",
        lambda r: replace(r, funnel=tuple(s for s in r.funnel if s.name != "speaking")),
    ),
    ("The funnel says 9 for 'rows'", lambda r: stage(r, "rows", count=9)),
    ("The funnel says 6 for 'speaking'", lambda r: stage(r, "speaking", count=6)),
    (
        "1 are accounted for, but 2 are gone",
        lambda r: stage(r, "comments", lost=(LossReason("empty", 1),)),
    ),
    ("0 are accounted for, but 1 are gone", lambda r: stage(r, "extracted", lost=())),
    ("0 are accounted for, but 2 are gone", lambda r: stage(r, "claims", lost=())),
    (
        "3 rows are listed as left out, but only 2",
        lambda r: replace(r, left_out=(*r.left_out, Row(9, "9", Fate.JUNK))),
    ),
    ("Row 1 is listed as left out", lambda r: replace(r, left_out=(Row(1, "1", Fate.JUNK),))),
    ("Row 7 is listed as left out", lambda r: replace(r, left_out=(Row(7, "7", Fate.KEPT),))),
    ("0.9000 of the comments make a claim, but it is 0.8333", lambda r: coverage(r, speaking=0.9)),
    ("0.9900 of the text is quoted", lambda r: coverage(r, quoted_characters=0.99)),
    (
        "0.5000 of the comments are in a topic, but it is at least 0.6667",
        lambda r: coverage(r, placed=0.5),
    ),
    ("1.2000 of the comments are in a topic", lambda r: coverage(r, placed=1.2)),
    ("counts 'Ann' 2 times", lambda r: crux(r, disagreeing=("Cy", "Ann"), disagree=2)),
    ("says 1 agree, but names 2", lambda r: crux(r, agree=1)),
    ("says controversy 1.0000, but it is 0.5000", lambda r: crux(r, controversy=1.0)),
    ("says agreement 0.9000", lambda r: crux(r, agreement=0.9)),
    ("is called 'max'", lambda r: crux(r, level="max")),
    ("cites claim 'g-9'", lambda r: crux(r, cites=("g-9",))),
    ("which topic 'green' does not have", lambda r: crux(r, topic="green")),
    ("does not have the cruxes", lambda r: matrix(r, cruxes=("x-2",))),
    ("not 4 speakers by 1 cruxes", lambda r: matrix(r, cells=r.matrix.cells[:3])),
    (
        "not 4 speakers by 1 cruxes",
        lambda r: matrix(r, cells=(*r.matrix.cells[:3], ("agree", "agree"))),
    ),
    ("more than one row for 'Ann'", lambda r: matrix(r, speakers=("Ann", "Ann", "Cy", "Vic"))),
    ("unknown word 'maybe'", lambda r: matrix(r, cells=(("maybe",), *r.matrix.cells[1:]))),
    (
        "has nothing for 'Ann', the crux agree",
        lambda r: matrix(r, cells=(("",), *r.matrix.cells[1:])),
    ),
    (
        "Claim 1 says controversy 0.1000, but its votes",
        lambda r: claim(r, votes=VoteCount(3, 2, 1, 0.1)),
    ),
]


@pytest.mark.parametrize(
    ("message", "change"), WRONG, ids=[f"{at} {message}" for at, (message, _) in enumerate(WRONG)]
)
def test_what_is_wrong_is_named(report: Report, message: str, change: Change) -> None:
    import re

    problem_list = problems(change(report))
    assert any(re.search(message, problem) for problem in problem_list), problem_list


def test_votes_without_names_are_fine(report: Report) -> None:
    """Polis counts votes without saying whose they are: the names may be fewer than the counts."""
    nameless = replace(
        report,
        cruxes=(replace(report.cruxes[0], agreeing=(), disagreeing=(), undecided=()),),
        matrix=replace(report.matrix, speakers=(), cells=()),
    )
    assert problems(nameless) == []


def test_an_unlisted_stage_count_is_compared(report: Report) -> None:
    assert isinstance(report.funnel[0], Stage)
    assert problems(stage(report, "claims", count=5))
