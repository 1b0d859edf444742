"""Topics that the organisers gave: which sentences speak about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Labels
from holdfast.apps.report.local.clustering import Division, subdivide
from holdfast.apps.report.local.embeddings import Vectors, unit_length
from holdfast.apps.report.local.grouping import stem
from holdfast.apps.report.local.tokenizing import languages, stop_words, units
from holdfast.apps.report.model.brief import GivenTopic

_NEAR, _WITH_SOME, _WITH_ALL = 0.38, 0.28, 0.15
"""How near a sentence must be to a topic: by meaning alone, or if it uses some or all words of its
name."""


@dataclass(frozen=True, slots=True)
class GivenTopics:
    """The given topics with their given subtopics, numbered through all of them."""

    topics: tuple[GivenTopic, ...]
    names: dict[int, str]
    topic_of: dict[int, int]

    @classmethod
    def of(cls, topics: Sequence[GivenTopic]) -> GivenTopics:
        below = [
            (number, name)
            for number, topic in enumerate(topics)
            for name in dict.fromkeys(topic.subtopics)
        ]
        names = {at: name for at, (_, name) in enumerate(below)}
        return cls(tuple(topics), names, {at: number for at, (number, _) in enumerate(below)})

    @property
    def subtopics(self) -> int:
        return len(self.names)

    @property
    def texts(self) -> list[str]:
        """What to compare with: topics first, then subtopics."""
        phrases = [
            " ".join((topic.name, topic.name, topic.description, *topic.subtopics))
            for topic in self.topics
        ]
        return phrases + list(self.names.values())


def assign(
    vectors: Vectors, given_vectors: Vectors, texts: Sequence[str], given: GivenTopics
) -> Division:
    """The sentences that speak about a given topic, in its given subtopics or in such as are found
    in it."""
    middle = vectors.mean(axis=0, keepdims=True)
    rows, targets = unit_length(vectors - middle), unit_length(given_vectors - middle)
    count = len(given.topics)
    stop = stop_words(tuple(languages(texts)) or ("en",))
    stems = [_stems(text, stop) for text in texts]
    topics = _nearest(
        rows @ targets[:count].T,
        _naming(stems, [_stems(topic.name, stop) for topic in given.topics]),
    )
    subtopics = np.full(len(rows), UNASSIGNED, np.intp)
    next_free = given.subtopics
    for number, topic in enumerate(given.topics):
        inside = np.flatnonzero(topics == number)
        below = [subtopic for subtopic, above in given.topic_of.items() if above == number]
        if below and len(inside):
            name_stems = [
                _stems(given.names[subtopic], stop) - _stems(topic.name, stop) for subtopic in below
            ]
            similar = rows[inside] @ targets[[count + subtopic for subtopic in below]].T
            labels = _nearest(similar, _naming([stems[int(row)] for row in inside], name_stems))
            subtopics[inside] = np.where(labels == UNASSIGNED, UNASSIGNED, np.array(below)[labels])
        rest = inside[subtopics[inside] == UNASSIGNED]
        if len(rest):
            labels = subdivide(rows[rest])
            subtopics[rest] = labels + next_free
            next_free += int(labels.max()) + 1
    return Division(topics, subtopics)


def _stems(text: str, stop: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, units(text, stop)))


def _nearest(similar: Vectors, named: Vectors) -> Labels:
    """The nearest target of each row that is near enough."""
    best = (similar + 0.15 * named).argmax(axis=1)
    rows = np.arange(len(best))
    words = named[rows, best]
    needed = np.where(words > 0.9, _WITH_ALL, np.where(words >= 0.5, _WITH_SOME, _NEAR))
    return np.where(similar[rows, best] >= needed, best, UNASSIGNED)


def _naming(stems: Sequence[frozenset[str]], names: Sequence[frozenset[str]]) -> Vectors:
    """Which share of the words of each name each text uses."""
    return np.array(
        [[len(words & name) / max(1, len(name)) for name in names] for words in stems], np.float32
    )
