"""Names and descriptions of topics and subtopics, in words that people used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Labels
from holdfast.apps.report.local.clustering import Division
from holdfast.apps.report.local.embeddings import Vectors, unit_length
from holdfast.apps.report.local.given_topics import GivenTopics
from holdfast.apps.report.local.messages import listed, message
from holdfast.apps.report.local.phrases import Phrases, collect_phrases
from holdfast.apps.report.local.statements import as_statement, shortened
from holdfast.apps.report.local.tokenizing import UNKNOWN, languages, stop_words
from holdfast.apps.report.local.topic_names import (
    Candidate,
    candidates,
    capitalised,
    compose_name,
    distinct_candidates,
    join,
)
from holdfast.apps.report.model.brief import GivenTopic

_TELLING = {True: 0.07, False: 0.05}
"""The least score of a single word, and of a phrase, that tells what sentences are about."""
_NAMING = 0.08
"""The least score of what can name a whole topic."""
_HELD = 40
"""A topic has at least one subtopic for so many sentences, named well or not."""


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic by its number, with its subtopics by theirs; ids come later."""

    number: int
    name: str
    description: str
    subtopics: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Below:
    """A subtopic that is still without a name: its sentences, and the phrases that could name
    it."""

    number: int
    rows: list[int]
    best: Sequence[Candidate]

    def tells(self) -> bool:
        """Whether a phrase says what it is about: a single word must do so for more of it."""
        return bool(self.best) and self.best[0].score >= _TELLING[self.best[0].is_word]


class Describer:
    """Names and descriptions for the topics of a division."""

    def __init__(
        self, texts: Sequence[str], speakers: Sequence[str], vectors: Vectors, report: str
    ) -> None:
        self._texts = texts
        self._speakers = speakers
        self._vectors = vectors
        self._report = report
        """The language of the report; names are in the language of the comments."""
        spoken = languages(self._texts)
        self._language = spoken[0] if spoken else UNKNOWN
        self._phrases: Phrases = collect_phrases(self._texts, stop_words(tuple(spoken)))

    def describe(self, division: Division, given: GivenTopics) -> list[DescribedTopic]:
        """The topics of a division, and those that were given and that nobody speaks about."""
        inside = members(division.topics)
        best = {
            number: candidates(self._phrases, rows, self._speakers, breadth=0.85)
            for number, rows in inside.items()
        }
        clearest = sorted(
            inside, key=lambda number: (-best[number][0].score if best[number] else 0.0, number)
        )
        taken = {topic.name for topic in given.topics}
        described = []
        for number in clearest:
            subtopics = self._nameable(inside[number], division.subtopics, given)
            given_topic = given.topics[number] if number < len(given.topics) else None
            name, used = (
                (given_topic.name, [])
                if given_topic
                else self._named(inside[number], best[number], subtopics, taken)
            )
            taken |= {capitalised(self._phrases.written(candidate.phrase)) for candidate in used}
            about = (given_topic.description if given_topic else "") or self._about(
                inside[number], best[number]
            )
            described.append(
                DescribedTopic(
                    number, name, about, tuple(self._subtopics(subtopics, name, used, given))
                )
            )
        absent = [number for number in range(len(given.topics)) if number not in inside]
        return described + [_absent(number, given.topics[number], given) for number in absent]

    def _nameable(self, inside: list[int], subtopics: Labels, given: GivenTopics) -> list[_Below]:
        """The subtopics of a topic, largest first. One whose sentences share no telling phrase
        joins the nearest."""
        while True:
            rows = members(subtopics, inside)
            nameable = [
                _Below(
                    sub,
                    rows_of_subtopic,
                    candidates(self._phrases, rows_of_subtopic, self._speakers),
                )
                for sub, rows_of_subtopic in rows.items()
            ]
            nameable.sort(key=lambda subtopic: (-len(subtopic.rows), subtopic.number))
            poor = [
                subtopic
                for subtopic in nameable
                if subtopic.number not in given.names and not subtopic.tells()
            ]
            if len(nameable) <= max(1, len(inside) // _HELD) or not poor:
                return nameable
            self._join(
                poor[-1], [subtopic for subtopic in nameable if subtopic is not poor[-1]], subtopics
            )

    def _join(self, small: _Below, others: Sequence[_Below], subtopics: Labels) -> None:
        middles = unit_length(
            np.stack([self._vectors[subtopic.rows].sum(axis=0) for subtopic in [small, *others]])
        )
        subtopics[small.rows] = others[int(np.argmax(np.round(middles[1:] @ middles[0], 4)))].number

    def _named(
        self, inside: list[int], best: Sequence[Candidate], below: Sequence[_Below], taken: set[str]
    ) -> tuple[str, list[Candidate]]:
        """The name of a topic; if its sentences share too little, what its two largest parts are
        about."""
        if not best or best[0].score < _NAMING:
            parts = distinct_candidates(
                [subtopic.best[0] for subtopic in below if subtopic.best], 2
            )
            if len(parts) > 1 and (name := join(self._phrases, parts, self._language)) not in taken:
                taken.add(name)
                return name, parts
        name, used = compose_name(self._phrases, best, len(inside), self._language, taken)
        return (name, used) if name else (self._unnamed(inside, taken), [])

    def _about(self, inside: list[int], best: Sequence[Candidate]) -> str:
        about = [
            self._phrases.written(candidate.phrase) for candidate in distinct_candidates(best, 3)
        ]
        if not about:
            return self._central(inside)
        return message(self._report, "about", phrases=listed(self._report, about))

    def _subtopics(
        self, below: Sequence[_Below], topic: str, used: Sequence[Candidate], given: GivenTopics
    ) -> Iterator[tuple[int, str, str]]:
        taken = {topic, *given.names.values()}
        for subtopic in below:
            name = given.names.get(subtopic.number) or (
                topic if len(below) == 1 else self._below(subtopic, taken, used)
            )
            yield subtopic.number, name, self._central(subtopic.rows)

    def _below(self, subtopic: _Below, taken: set[str], above: Sequence[Candidate]) -> str:
        name, _ = compose_name(
            self._phrases, subtopic.best, len(subtopic.rows), self._language, taken, above
        )
        return name or self._unnamed(subtopic.rows, taken)

    def _unnamed(self, rows: list[int], taken: set[str]) -> str:
        """The beginning of the most central sentence, where no phrase is shared."""
        name = shortened(self._central(rows), 40).rstrip(" .。!")
        numbered = (f"{name} ({number})" for number in count(2))
        free = next(candidate for candidate in chain([name], numbered) if candidate not in taken)
        taken.add(free)
        return free

    def _central(self, rows: list[int]) -> str:
        """The sentence that is most like all the others; among nearly equals a short one."""
        middle = unit_length(self._vectors[rows].sum(axis=0, keepdims=True))[0]
        likeness = np.round(self._vectors[rows] @ middle, 3)
        scores = [
            float(likeness[at]) - max(0, len(self._texts[row]) - 120) / 600
            for at, row in enumerate(rows)
        ]
        return shortened(as_statement(self._texts[rows[int(np.argmax(scores))]]), 160)


def members(labels: Labels, among: Sequence[int] | None = None) -> dict[int, list[int]]:
    """The rows of each cluster; clusters in order of their numbers."""
    rows_by_label: dict[int, list[int]] = {}
    for row in range(len(labels)) if among is None else among:
        label = int(labels[row])
        if label != UNASSIGNED:
            rows_by_label.setdefault(label, []).append(row)
    return dict(sorted(rows_by_label.items()))


def _absent(number: int, topic: GivenTopic, given: GivenTopics) -> DescribedTopic:
    """A topic that was asked for and that nobody speaks about."""
    below = tuple(
        (sub, name, "") for sub, name in given.names.items() if given.topic_of[sub] == number
    )
    return DescribedTopic(
        number, topic.name, topic.description, below or ((-1 - number, topic.name, ""),)
    )
