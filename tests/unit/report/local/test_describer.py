"""What topics are called, and what people mention in recorded speech."""

from itertools import chain, pairwise

import numpy as np
import pytest

from holdfast.apps.report.local.clustering import Division
from holdfast.apps.report.local.embeddings import sentence_vectors
from holdfast.apps.report.local.given_topics import GivenTopics
from holdfast.apps.report.local.topic_descriptions import Describer, Said

SUBJECTS = {
    "technology": ("the phone", "a computer", "my paper"),
    "gardening": ("the hose", "a tomato", "my shovel"),
}


def told(subject: str, things: tuple[str, ...], at: int) -> list[str]:
    """The sentences of one long comment: all mention the first thing, few the others."""
    shared = [f"And {subject} was new to me then.", f"They gave me {things[0]} to look at."]
    rare = [f"Then {things[1 + at % 2]} broke."] if at < 2 else []
    return [*shared, *rare, *(f"I was there for day {at}{n} of it." for n in range(8))]


def described(people: int):
    parts, comment_of, speakers, topics = [], [], [], []
    for number, (subject, things) in enumerate(SUBJECTS.items()):
        for at in range(4):
            sentences = told(subject, things, at)
            comment_of += [len(speakers)] * len(sentences)
            speakers.append(f"person {at % people}")
            topics += [number] * len(sentences)
            parts += sentences
    texts = [
        " ".join(part for part, owner in zip(parts, comment_of, strict=True) if owner == comment)
        for comment in range(len(speakers))
    ]
    labels = np.array(topics, np.intp)
    describer = Describer(
        Said(parts, comment_of, texts, speakers, None), sentence_vectors(parts), "en"
    )
    return describer.describe(Division(labels, labels.copy()), GivenTopics.of(()))


def test_what_several_people_mention_about_a_topic_is_told_with_their_number():
    topics = {topic.name: topic for topic in described(people=3)}
    assert topics.keys() == {"Technology", "Gardening"}
    assert [(m.phrase, m.people) for m in topics["Technology"].mentions] == [("phone", 3)]
    assert [(m.phrase, m.people) for m in topics["Gardening"].mentions] == [("hose", 3)]


@pytest.mark.parametrize("people", [1, 2])
def test_what_one_or_two_people_mention_is_not(people: int):
    assert not any(topic.mentions for topic in described(people))


_NOUNS = """heron weir otter meadow lantern violin copper glacier pepper saddle anchor bishop candle
dolphin engine feather garlic hammer island jacket kettle ladder magnet needle orchard pillow quarry
ribbon sandal temple umbrella vessel walnut yogurt zipper acorn basket canyon diamond easel falcon
goblet harbor icicle jungle kitten locket marble napkin oyster parrot quiver rocket saucer tunnel
urchin violet wagon"""
NOUNS = _NOUNS.split()
PAIRS = zip(NOUNS[::2], reversed(NOUNS[1::2]), strict=False)


def test_a_part_of_a_topic_without_a_name_that_has_one_is_a_topic_of_its_own():
    remarks = [f"The {first} and the {last}." for first, last in chain(pairwise(NOUNS), PAIRS)]
    trams = [f"The tram to the {noun} should run at night." for noun in NOUNS[:6]]
    schools = [f"Our school near the {noun} needs teachers." for noun in NOUNS[8:24]]
    parts = [*remarks, *trams, *schools]
    topics = np.repeat([0, 0, 1], [len(remarks), len(trams), len(schools)])
    subtopics = np.repeat([0, 1, 2], [len(remarks), len(trams), len(schools)])
    speakers = [f"person {at}" for at in range(len(parts))]
    describer = Describer(
        Said(parts, list(range(len(parts))), parts, speakers, None), sentence_vectors(parts), "en"
    )
    division = Division(topics, subtopics)
    described = describer.describe(division, GivenTopics.of(()))
    assert {topic.name for topic in described} == {"General remarks", "Tram", "School"}
    (general,) = [topic for topic in described if topic.name == "General remarks"]
    assert [name for _, name, _ in general.subtopics] == ["General remarks"]
    (tram,) = [topic.number for topic in described if topic.name == "Tram"]
    assert set(division.topics[len(remarks) : len(remarks) + len(trams)]) == {tram}
