"""Topics that the organisers gave: which sentences speak about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.adapters.local.clustering import NOWHERE, Division, subdivide
from holdfast.adapters.local.embeddings import Vectors, unit
from holdfast.adapters.local.grouping import stem
from holdfast.adapters.local.words import languages, stop_words, units
from holdfast.model.report.brief import GivenTopic

_NEAR, _WITH_WORDS = 0.34, 0.2
"""How near a sentence must be to a topic: by meaning alone, or if it uses the words of its name."""


@dataclass(frozen=True, slots=True)
class Given:
    """The given topics with their given subtopics, numbered through all of them."""

    topics: tuple[GivenTopic, ...]
    names: dict[int, str]
    topic_of: dict[int, int]

    @classmethod
    def of(cls, topics: Sequence[GivenTopic]) -> Given:
        below = [(number, name) for number, topic in enumerate(topics) for name in dict.fromkeys(topic.subtopics)]
        names = {at: name for at, (_, name) in enumerate(below)}
        return cls(tuple(topics), names, {at: number for at, (number, _) in enumerate(below)})

    @property
    def subtopics(self) -> int:
        return len(self.names)

    @property
    def texts(self) -> list[str]:
        """What to compare with: topics first, then subtopics."""
        whole = [" ".join((topic.name, topic.name, topic.description, *topic.subtopics)) for topic in self.topics]
        return whole + [f"{name} {name} {self.topics[self.topic_of[at]].name}" for at, name in self.names.items()]


def assign(vectors: Vectors, wanted: Vectors, texts: Sequence[str], given: Given) -> Division:
    """The sentences that speak about a given topic, in its given subtopics or in such as are found in it."""
    middle = vectors.mean(axis=0, keepdims=True)
    rows, targets = unit(vectors - middle), unit(wanted - middle)
    count = len(given.topics)
    named = _naming(texts, [f"{t.name} {' '.join(t.subtopics)}" for t in given.topics])
    topics = _nearest(rows @ targets[:count].T, named)
    subtopics = np.full(len(rows), NOWHERE, np.intp)
    next_free = given.subtopics
    for number in range(count):
        inside = np.flatnonzero(topics == number)
        below = [at for at, topic in given.topic_of.items() if topic == number]
        if below and len(inside):
            similar = rows[inside] @ targets[[count + at for at in below]].T
            words = _naming([texts[int(row)] for row in inside], [given.names[at] for at in below])
            labels = _nearest(similar, words)
            subtopics[inside] = np.where(labels == NOWHERE, NOWHERE, np.array(below)[labels])
        open_ = inside[subtopics[inside] == NOWHERE]
        if len(open_):
            labels = subdivide(rows[open_])
            subtopics[open_] = labels + next_free
            next_free += int(labels.max()) + 1
    return Division(topics, subtopics)


def _nearest(similar: Vectors, named: Vectors) -> np.ndarray:
    """The nearest target of each row that is near enough."""
    score = similar + 0.15 * named
    best = score.argmax(axis=1)
    rows = np.arange(len(best))
    needed = np.where(named[rows, best] > 0, _WITH_WORDS, _NEAR)
    return np.where(similar[rows, best] >= needed, best, NOWHERE)


def _naming(texts: Sequence[str], names: Sequence[str]) -> Vectors:
    """Which share of the words of each name a text uses."""
    stop = stop_words(tuple(languages(texts)) or ("en",))
    wanted = [frozenset(map(stem, units(name, stop))) for name in names]
    used = np.zeros((len(texts), len(names)), np.float32)
    for row, text in enumerate(texts):
        said = frozenset(map(stem, units(text, stop)))
        used[row] = [len(said & words) / max(1, len(words)) for words in wanted]
    return used
