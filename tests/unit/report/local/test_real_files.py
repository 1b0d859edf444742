"""Floors for the quality of real reports. The files are no part of the project: without them these
tests skip."""

from functools import cache

import pytest
from tests.unit.report.local.helpers import Analysis, analyse, real

from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.taxonomy import OTHER

FLOORS = {
    # file: (fewest topics, most topics, least coverage of comments with a claim, largest share of
    # one topic)
    "marchon": (12, 20, 0.9, 0.25),
    "football": (3, 12, 0.85, 0.6),
    "taiwan": (3, 12, 0.95, 0.6),
    "interviews": (4, 12, 0.95, 0.6),
    "seattle": (2, 6, 0.8, 0.7),
}


@cache
def report(name: str) -> Analysis:
    return analyse(real(name), Brief(language="zh" if name == "taiwan" else "en"))


@pytest.mark.parametrize("name", FLOORS)
def test_topics_are_neither_too_few_nor_too_many_nor_one_for_all(name):
    fewest, most, coverage, largest = FLOORS[name]
    analysis = report(name)
    assert fewest <= len(analysis.clustering.topics) <= most
    assert analysis.coverage() >= coverage
    placed = [p for p in analysis.clustering.placements if p.subtopic != OTHER]
    for topic in analysis.clustering.topics:
        inside = {p.comment for p in placed if p.subtopic.startswith(f"{topic.id}.")}
        assert len(inside) <= largest * len({p.comment for p in placed})


@pytest.mark.parametrize("name", [*FLOORS, "hard", "duplicates"])
def test_names_are_short_and_differ(name):
    topics = report(name).clustering.topics
    assert len({topic.name for topic in topics}) == len(topics)
    for topic in topics:
        assert 1 < len(topic.name) <= 60
        assert len({subtopic.name for subtopic in topic.subtopics}) == len(topic.subtopics)


@pytest.mark.parametrize("name", [*FLOORS, "hard", "duplicates"])
def test_every_quote_is_in_its_comment_and_every_claim_in_one_group(name):
    analysis = report(name)
    text = {comment.id: comment.text for comment in real(name)}
    assert all(
        text[claim.comment][claim.start : claim.end] == claim.quote for claim in analysis.claims
    )
    grouped = [
        member.id
        for groups in analysis.groups.values()
        for group in groups
        for member in group.members
    ]
    assert sorted(grouped) == sorted(claim.id for claim in analysis.claims)
    assert all(sentence.cites for sentence in analysis.findings)


def test_the_subjects_of_a_political_movement_are_all_there():
    names = " ".join(
        subtopic.name
        for topic in report("marchon").clustering.topics
        for subtopic in (topic, *topic.subtopics)
    ).casefold()
    for subject in (
        "health",
        "gun",
        "climate",
        "trump",
        "women",
        "education",
        "electoral college",
        "abortion",
        "citizens united",
    ):
        assert subject in names


def test_form_fillers_tests_and_off_topic_remarks_are_set_aside():
    analysis = report("football")
    other = {p.comment for p in analysis.clustering.placements if p.subtopic == OTHER}
    text = {comment.id: comment.text for comment in real("football")}
    tests = {item for item, statement in text.items() if statement.startswith("test ")}
    assert tests
    assert tests <= other
    assert not [claim for claim in analysis.claims if claim.comment in tests]
    assert any("public space" in text[item] for item in other)


def test_the_same_claim_in_other_words_is_counted_together():
    largest = max(
        (g for groups in report("duplicates").groups.values() for g in groups),
        key=lambda g: len(g.speakers),
    )
    assert len(largest.speakers) == 3
    merged = [
        g for groups in report("marchon").groups.values() for g in groups if len(g.speakers) > 1
    ]
    assert len(merged) > 15


def test_chinese_names_are_in_chinese():
    for topic in report("taiwan").clustering.topics:
        assert any(
            "\u4e00" <= character <= "\u9fff" for character in topic.name + topic.subtopics[0].name
        )
