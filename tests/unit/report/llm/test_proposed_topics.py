"""What a model proposes becomes a taxonomy that is ours."""

from __future__ import annotations

import random

import pytest
from pydantic import ValidationError
from tests.unit.report.llm.harness import text

from holdfast.apps.report.llm.answers import TopicAnswer, TopicsAnswer
from holdfast.apps.report.llm.proposed_topics import (
    MOST_SAMPLES,
    SAMPLE_TOKENS,
    extend_taxonomy,
    make_taxonomy,
    sample_batches,
    topic_instructions,
)
from holdfast.apps.report.model.brief import Brief, GivenTopic
from holdfast.apps.report.testing.injections import injections
from holdfast.model.tokens import estimate_tokens


def shape(name: str, *subtopics: str, description: str = "About it.") -> TopicAnswer:
    return TopicAnswer.model_validate(
        {
            "name": name,
            "description": description,
            "subtopics": [
                {"name": subtopic, "description": f"About {subtopic}."} for subtopic in subtopics
            ],
        }
    )


def names(topics) -> dict[str, list[str]]:
    return {topic.name: [entry.name for entry in topic.subtopics] for topic in topics}


def test_ids_are_ours():
    topics = make_taxonomy([shape("Buses", "Fares", "Times"), shape("Parks", "Trees")], Brief())
    assert [topic.id for topic in topics] == ["t1", "t2"]
    assert [subtopic.id for topic in topics for subtopic in topic.subtopics] == [
        "t1.1",
        "t1.2",
        "t2.1",
    ]


def test_names_and_descriptions_are_not_longer_than_agreed():
    topic = make_taxonomy([shape("Bus " * 50, "Fare " * 40, description="word " * 300)], Brief())[0]
    assert len(topic.name) <= 60
    assert len(topic.subtopics[0].name) <= 60
    assert len(topic.description.split()) <= 50


def test_topics_of_the_same_name_are_one():
    topics = make_taxonomy([shape("Buses", "Fares"), shape("buses ", "fares", "Times")], Brief())
    assert names(topics) == {"Buses": ["Fares", "Times"]}


def test_a_topic_without_subtopics_has_one_of_its_own_name():
    assert names(make_taxonomy([shape("Buses")], Brief())) == {"Buses": ["Buses"]}


def test_what_has_no_name_is_nothing():
    assert names(
        make_taxonomy([shape("  "), shape("!!!", "x"), shape("Buses", "", "Fares")], Brief())
    ) == {"Buses": ["Fares"]}


def test_markup_in_names_goes():
    topics = make_taxonomy(
        [shape("<b>Buses</b> ![x](https://evil.example/?q=1)", "[Fares](javascript:0)")], Brief()
    )
    assert names(topics) == {"Buses": ["Fares"]}


def test_no_more_topics_than_wanted():
    proposed = [shape(f"Topic {number}", "One") for number in range(40)]
    assert len(make_taxonomy(proposed, Brief(topics=3))) == 3
    assert len(make_taxonomy(proposed, Brief())) <= 24


def test_given_topics_come_first_and_keep_their_names_and_subtopics():
    given = (GivenTopic("Money", "Taxes and fees.", ("Taxes", "Fees")), GivenTopic("Water"))
    topics = make_taxonomy(
        [shape("Buses", "Fares"), shape("money", "Debts")], Brief(given=given, topics=3)
    )
    assert names(topics) == {
        "Money": ["Taxes", "Fees", "Debts"],
        "Water": ["Water"],
        "Buses": ["Fares"],
    }
    assert topics[0].description == "Taxes and fees."


def test_given_topics_are_all_there_even_if_fewer_were_wanted():
    topics = (GivenTopic("Money"), GivenTopic("Water"))
    assert list(names(make_taxonomy([shape("Buses", "Fares")], Brief(given=topics, topics=1)))) == [
        "Money",
        "Water",
    ]


def test_more_topics_leave_those_there_are_as_they_are():
    topics = make_taxonomy([shape("Buses", "Fares", "Times"), shape("Parks", "Trees")], Brief())
    grown = extend_taxonomy(
        topics, [shape("parks", "Dogs", "trees"), shape("Noise", "Nights")], Brief()
    )
    assert grown[0] is topics[0]
    assert names(grown) == {
        "Buses": ["Fares", "Times"],
        "Parks": ["Trees", "Dogs"],
        "Noise": ["Nights"],
    }
    assert [subtopic.id for topic in grown for subtopic in topic.subtopics] == [
        "t1.1",
        "t1.2",
        "t2.1",
        "t2.2",
        "t3.1",
    ]


def test_more_topics_than_wanted_are_not_added():
    topics = make_taxonomy([shape("Buses", "Fares")], Brief(topics=1))
    assert names(
        extend_taxonomy(
            topics, [shape("Noise", "Nights"), shape("Buses", "Times")], Brief(topics=1)
        )
    ) == {"Buses": ["Fares", "Times"]}


def test_a_million_topics_are_no_answer():
    topic = {"name": "Buses", "description": "", "subtopics": []}
    with pytest.raises(ValidationError):
        TopicsAnswer.model_validate({"topics": [topic] * 1_000_000})
    with pytest.raises(ValidationError):
        TopicsAnswer.model_validate({"topics": [{**topic, "name": "x" * 10_000}]})


def test_wishes_name_number_and_wanted_topics():
    assert "exactly 5 topics" in topic_instructions(Brief(topics=5))
    assert '"Money"' in topic_instructions(Brief(given=(GivenTopic("Money"),)))


# --- samples --------------------------------------------------------------------------------------


def test_a_small_set_is_read_whole():
    texts = [text(number) for number in range(200)]
    batches = sample_batches([*texts, *texts])
    assert len(batches) == 1
    assert sorted(batches[0]) == sorted(texts)


def test_a_large_set_is_sampled_by_content_and_fits():
    texts = [text(number) * 4 for number in range(20_000)]
    batches = sample_batches(texts)
    random.Random(3).shuffle(texts)
    assert sample_batches(texts) == batches
    assert len(batches) == MOST_SAMPLES
    assert all(sum(map(estimate_tokens, batch)) <= SAMPLE_TOKENS * 1.1 for batch in batches)
    assert 1000 < sum(map(len, batches)) < len(texts)


def test_every_part_of_the_file_has_its_say():
    texts = [text(number) * 4 for number in range(20_000)]
    sample = {entry for batch in sample_batches(texts) for entry in batch}
    quarters = [
        sum(entry in sample for entry in texts[start : start + 5000])
        for start in range(0, 20_000, 5000)
    ]
    assert max(quarters) < 1.5 * min(quarters)


def test_a_few_more_comments_hardly_change_a_sample():
    texts = [text(number) * 4 for number in range(20_000)]
    before = {entry for batch in sample_batches(texts) for entry in batch}
    after = {
        entry
        for batch in sample_batches(texts + [text(number) * 4 for number in range(20_000, 20_037)])
        for entry in batch
    }
    assert len(before & after) > 0.98 * len(before)


def test_who_wants_to_steer_has_no_say_in_the_topics():
    texts = [text(number) for number in range(50)]
    assert sample_batches([*texts, *injections()]) == sample_batches(texts)


def test_unless_there_is_nobody_else():
    assert sum(map(len, sample_batches(injections()))) == len(injections())


def test_one_long_comment_is_not_everything():
    batches = sample_batches([*(text(number) for number in range(20)), "long " * 20_000])
    assert max(len(entry) for batch in batches for entry in batch) <= 1_500


def test_no_comments_are_no_samples():
    assert sample_batches([]) == []
