"""Summaries use people's own words, cite what they rest on, and tensions are rare."""

from dataclasses import replace

import pytest
from tests.unit.report.local.helpers import groups

from holdfast.apps.report.local.findings import overview
from holdfast.apps.report.local.messages import message
from holdfast.apps.report.local.summaries import leading_groups, summarise
from holdfast.apps.report.local.tensions import tension
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.crux import Basis
from holdfast.apps.report.model.stance import VoteTally
from holdfast.apps.report.model.taxonomy import Mention, Subtopic, Topic

BUSES = groups(
    "Buses should run at night.",
    "The bus is too expensive.",
    "Buses ought to run during the night as well.",
    "Bus drivers deserve better pay.",
    "The stop needs a roof.",
    "Electric buses are quieter.",
    people=(5, 3, 1, 1, 1, 1),
)
TOPIC = Topic("t1", "Buses", "", (Subtopic("t1.1", "Night buses"), Subtopic("t1.2", "Fares")))


def test_a_topic_is_told_by_its_best_supported_claims():
    sentences = summarise(TOPIC, BUSES, "en")
    assert sentences[0].text == "Night buses: Buses should run at night (5 people)."
    assert sentences[1].text == "Night buses: The bus is too expensive (3 people)."
    assert len(sentences) == 4


def test_every_sentence_cites_the_claim_it_is():
    statement_of = {group.id: group.statement for group in BUSES}
    for sentence in summarise(TOPIC, BUSES, "en"):
        (cited,) = sentence.cites
        assert statement_of[cited].rstrip(".") in sentence.text


def test_what_was_said_is_not_said_again():
    assert not any("during the night" in group.statement for group in leading_groups(BUSES, 4, {}))


def test_no_claims_no_summary():
    assert summarise(TOPIC, [], "en") == []
    assert overview([TOPIC], {"t1": []}, "en") == []


def test_findings_go_through_topics_by_people_and_are_about_them():
    schools = Topic("t2", "Schools", "", (Subtopic("t2.1", "Schools"),))
    groups_of = groups(
        "Schools need teachers.",
        "Classes are too large.",
        "School meals should be free.",
        subtopic="t2.1",
    )
    findings = overview([schools, TOPIC], {"t1": BUSES, "t2": groups_of}, "en")
    assert findings[0].text.startswith(
        "Buses, raised by 12 people. Most often: Buses should run at night (5 people)"
    )
    assert findings[1].text.startswith("Schools, raised by 3 people. For example: ")
    assert 4 <= len(findings) <= 8
    assert all(finding.cites for finding in findings)


def test_what_people_are_does_not_speak_for_a_topic():
    party, green = groups(
        "The party should listen to its members.",
        "I am a member of the Green Party",
        people=(1, 4),
    )
    assert leading_groups([green, party], 2, {}) == [party]
    assert leading_groups([green], 2, {}) == [green]


def test_only_what_most_people_say_is_said_most_often():
    tool = Topic("t1", "Tool", "", (Subtopic("t1.1", "Tool"),))
    said = groups(
        "It could make the process of consultation quicker.",
        "The tool is incredibly useful for public sentiment.",
        people=(3, 2),
    )
    (finding, *_) = overview([tool], {"t1": said}, "en")
    assert finding.text == (
        "Tool, raised by 5 people. For example: The tool is incredibly useful for public "
        "sentiment (2 people)."
    )


def test_findings_are_at_most_eight():
    topics = [Topic(f"t{at}", f"Topic {at}", "", (Subtopic(f"t{at}.1", "x"),)) for at in range(20)]
    groups_of = {
        topic.id: groups(f"Claim number {topic.id} about things.", subtopic=f"{topic.id}.1")
        for topic in topics
    }
    assert len(overview(topics, groups_of, "en")) == 8


@pytest.mark.parametrize(
    "language", ["en", "fr", "de", "es", "ja", "zh", "ar", "zh-TW", "pt-BR", "und"]
)
def test_there_are_words_in_every_language(language):
    sentence = overview([TOPIC], {"t1": BUSES}, language)[0].text
    assert "Buses should run at night" in sentence
    assert "12" in sentence
    assert "{" not in sentence


def test_every_phrase_of_every_language_can_be_filled_in():
    values = {
        "phrases": 1,
        "all": 2,
        "count": 2,
        "topic": 3,
        "people": 4,
        "claim": 5,
        "agree": 6,
        "disagree": 7,
        "other": 8,
    }
    for language in ("en", "fr", "de", "es", "ja", "zh", "ar"):
        for key in (
            "raised",
            "agreed",
            "example",
            "mentions",
            "raised with mentions",
            "tension",
            "few",
            "selected",
            "given",
            "method",
            "weaker",
            "people plain",
        ):
            assert "{" not in message(language, key, **values, kept=1)


def test_two_opposite_claims_are_a_possible_tension():
    crux_draft = tension(
        groups(
            "Guns should be banned.",
            "Guns should not be banned.",
            "Trees are nice.",
            people=(2, 3, 1),
        ),
        "en",
    )
    assert crux_draft is not None
    assert crux_draft.basis is Basis.TENSION
    assert crux_draft.statement == "Guns should not be banned."
    assert "Guns should be banned." in crux_draft.explanation
    assert (len(crux_draft.agree), len(crux_draft.disagree)) == (3, 2)
    assert not set(crux_draft.agree) & set(crux_draft.disagree)
    assert len(crux_draft.cites) == 2


@pytest.mark.parametrize(
    "statements",
    [
        ("Guns should be banned.", "Trees are nice."),
        ("The electoral college should not exist", "The electoral college should be dissolved."),
        ("I identify as a man.", "I identify as a woman."),
        (
            "Access for people with disabilities is important.",
            "People with disabilities have rights, not institutions.",
        ),
        ("The minimum wage should be $15.", "The minimum wage should be $25."),
        ("Is the poll good?", "The poll is not good."),
    ],
)
def test_other_differences_are_no_tension(statements):
    assert tension(groups(*statements), "en") is None


def test_somebody_who_says_both_is_on_neither_side():
    first, second = groups("Guns should be banned.", "Guns should not be banned.")
    both = [first, type(second)(second.id, second.subtopic, second.statement, first.members)]
    assert tension(both, "en") is None


def test_what_more_people_say_comes_before_what_is_better_said():
    better, more = groups(
        "The tool should be used because it is important and fair",
        "It makes the process of consultation quicker",
        people=(2, 3),
    )
    assert leading_groups([better, more], 1, {"t1.1": "Tool"}) == [more]


def voted(group: ClaimGroup, agrees: int, disagrees: int) -> ClaimGroup:
    return replace(group, votes=VoteTally(agrees, disagrees, 0))


LIBRARY = groups(
    "The library should open on Sundays for families.",
    "The library needs more books about our town.",
    "The library should have a quiet room for pupils.",
    "The library should be sold to a private company.",
    people=(1, 1, 3, 1),
)
SUNDAYS, BOOKS, QUIET, SOLD = LIBRARY


def test_statements_come_by_the_share_that_surely_agrees_and_what_nobody_voted_on_behind():
    ranked = leading_groups([BOOKS, voted(QUIET, 60, 40), voted(SUNDAYS, 90, 10)], 3, {})
    assert [group.id for group in ranked] == [SUNDAYS.id, QUIET.id, BOOKS.id]


def test_a_few_votes_are_less_sure_than_many():
    ranked = leading_groups([voted(SUNDAYS, 6, 0), voted(BOOKS, 85, 15)], 2, {})
    assert [group.id for group in ranked] == [BOOKS.id, SUNDAYS.id]


def test_what_voters_do_not_accept_speaks_for_nothing_while_something_else_does():
    rejected, divided = voted(SOLD, 10, 90), voted(QUIET, 52, 48)
    assert leading_groups([rejected, divided, voted(SUNDAYS, 90, 10)], 3, {}) == [
        voted(SUNDAYS, 90, 10)
    ]
    assert leading_groups([rejected, divided], 3, {}) == [divided]


def test_what_voters_reject_is_said_to_be_rejected_or_divided():
    texts = [
        sentence.text
        for sentence in summarise(TOPIC, [voted(SOLD, 10, 90), voted(BOOKS, 45, 55)], "en")
    ]
    assert texts == [
        "Voters are split over: “The library needs more books about our town” "
        "(45 agree, 55 disagree).",
        "Widely rejected: “The library should be sold to a private company” (90 of 100 disagree).",
    ]


def test_the_name_of_a_subtopic_leads_only_what_is_about_it():
    parks = Topic("t1", "Town", "", (Subtopic("t1.1", "Parks"), Subtopic("t1.2", "Buses")))
    groups_of = groups(
        "Parks need more benches in the shade.",
        "Doctors should visit people at home again.",
    )
    texts = [sentence.text for sentence in summarise(parks, groups_of, "en")]
    assert texts == [
        "Parks: Parks need more benches in the shade.",
        "Doctors should visit people at home again.",
    ]


def test_a_finding_is_not_given_an_example_of_something_else():
    names = ("Parks", "Buses", "Schools", "Rents")
    town = [
        Topic(f"t{at}", name, "", (Subtopic(f"t{at}.1", name),)) for at, name in enumerate(names, 1)
    ]
    groups_of = {
        f"t{at}": groups(f"{name} should matter to the council.", subtopic=f"t{at}.1")
        for at, name in enumerate(names[:3], 1)
    }
    groups_of["t4"] = groups("Herons nest by the weir in spring, which is nice.", subtopic="t4.1")
    findings = [finding.text for finding in overview(town, groups_of, "en")]
    assert len(findings) == 3
    assert not any("Herons" in finding for finding in findings)


MENTIONED = (Mention("children", 2), Mention("sister", 1))


def test_recorded_speech_is_an_example_only_where_somebody_clearly_claims_something() -> None:
    housing, family = (
        Topic("t1", "Housing", "", (Subtopic("t1.1", "Housing"),)),
        Topic("t2", "Family", "", (Subtopic("t2.1", "Family"),), mentions=MENTIONED),
    )
    claimed = "The city should build more housing because rents are too high."
    spoken = {
        "t1": said_by_two(claimed, "Every house was lived in.", subtopic="t1.1"),
        "t2": said_by_two("Someone else is raising the children.", subtopic="t2.1"),
    }
    clear, unclear = overview((housing, family), spoken, "en")
    assert clear.text == f"Housing, raised by 2 people. For example: {claimed}"
    assert unclear.text == (
        "Family, raised by 2 of 2 people. Several mention: children (2 people) and sister (1 person)."
    )
    assert unclear.cites == (spoken["t2"][0].id,)


def test_recorded_speech_about_which_nothing_can_be_said_is_no_finding() -> None:
    family = Topic("t1", "Family", "", (Subtopic("t1.1", "Family"),))
    spoken = said_by_two("Someone else in the family is raising it.", subtopic="t1.1")
    assert overview([family], {"t1": spoken}, "en") == []
    assert summarise(family, spoken, "en") == []


def said_by_two(*statements: str, subtopic: str) -> list[ClaimGroup]:
    """Many claims of two people in long comments: these, and what says nothing alone."""
    fillers = tuple(f"And then we went to number {at}, you know." for at in range(20))
    made = groups(*statements, *fillers, subtopic=subtopic)
    return [
        replace(
            group,
            members=tuple(replace(m, speaker=f"person {at % 2}", start=600) for m in group.members),
        )
        for at, group in enumerate(made)
    ]
