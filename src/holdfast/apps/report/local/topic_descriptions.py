"""Names and descriptions of topics and subtopics, in words that people used."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count

import numpy as np

from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Labels
from holdfast.apps.report.local.clustering import MOST, Division, least_rows
from holdfast.apps.report.local.embeddings import Vectors, semantic_vectors, unit_length
from holdfast.apps.report.local.given_topics import GivenTopics
from holdfast.apps.report.local.messages import base_language, message
from holdfast.apps.report.local.phrases import Phrases, collect_phrases
from holdfast.apps.report.local.sentence_value import claim_score, stands_alone
from holdfast.apps.report.local.statements import as_statement, shortened
from holdfast.apps.report.local.tokenizing import UNKNOWN, language, languages, stop_words
from holdfast.apps.report.local.topic_names import (
    Candidate,
    candidates,
    compose_name,
    keys,
)
from holdfast.apps.report.model.brief import GivenTopic
from holdfast.apps.report.model.taxonomy import Mention

_TELLING = {True: 0.07, False: 0.05}
"""The least score of a single word, and of a phrase, that tells what sentences are about."""
_FITTING = 0.045
"""The least score of what can name a subtopic: a fainter name would mislead."""
_NAMING = 0.08
"""The least score of what can name a whole topic."""
_SOME = 0.1
"""The least share of a topic's comments that a phrase is in, to name it for want of a better."""
_SENTENCES_OF_SPEECH, _SURELY_CLAIMING = 10, 1.35
"""Who says more sentences than this was recorded; of what they say, only clear claims describe."""
_SCRIPTS = {"zh": "中文 / Chinese", "ja": "日本語 / Japanese", "ko": "한국어 / Korean"}
_PER_WORD, _RARELY, _OFTEN = 0.001, 0.025, 0.34
"""The least share of comments that a phrase is in to name them: so much for each word of a typical
one, within these bounds."""
_TO_ALL = 0.5
"""How near every phrase is to all sentences."""
_ACCEPTED = 0.6
"""The share of voters that must surely agree with a statement for it to describe a topic."""
_MENTIONED, _SEVERAL, _MORE_OFTEN, _MENTIONING = 3, 3, 1.5, 0.03
"""So many phrases are mentioned, each by several people, more often than in all comments, and with
this score at least."""
_HELD = 40
"""A topic has at least one subtopic for so many sentences, named well or not."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said: the parts that claim something, the comment of each, and for each comment its
    text, its speaker, and which share of the voters surely agrees, if people voted."""

    parts: Sequence[str]
    comment_of: Sequence[int]
    comments: Sequence[str]
    speakers: Sequence[str]
    agreement: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic by its number, with its subtopics by theirs; ids come later."""

    number: int
    name: str
    description: str
    subtopics: tuple[tuple[int, str, str], ...]
    mentions: tuple[Mention, ...] = ()


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


@dataclass(frozen=True, slots=True)
class _Named:
    """A topic's name, the phrase it came from, and its subtopics, which have no names yet."""

    name: str
    used: Sequence[Candidate]
    below: Sequence[_Below]


class Describer:
    """Names and descriptions for the topics of a division."""

    def __init__(self, said: Said, vectors: Vectors, report: str) -> None:
        self._said = said
        self._texts = said.parts
        self._vectors = vectors
        self._report = report
        """The language of the report; names are in the language of the comments."""
        self._spoken = len(said.parts) > _SENTENCES_OF_SPEECH * len(set(said.speakers))
        spoken = languages(self._texts)
        self._language = spoken[0] if spoken else UNKNOWN
        self._phrases: Phrases = collect_phrases(
            said.comments, stop_words(tuple(spoken)), self._language
        )
        self._phrases.leave_out_common_names(said.speakers)
        self._meanings = semantic_vectors(self._texts)
        self._middle = self._meanings.mean(axis=0, keepdims=True)

    def describe(
        self, division: Division, given: GivenTopics, counted: bool = False
    ) -> list[DescribedTopic]:
        """The topics of a division, and those that were given and that nobody speaks about. Where
        topics are `counted`, as many as there are stay."""
        inside = members(division.topics)
        named = self._all_named(inside, division, given, counted)
        described = []
        for number, topic in named.items():
            given_about = given.topics[number].description if number < len(given.topics) else ""
            about = given_about or self._sentence(inside[number], topic.name)
            others = {other.name for other in named.values()}
            below = self._subtopics(topic, others, division.subtopics, given, about)
            mentions = self._mentions(inside[number], topic) if self._spoken else []
            described.append(
                DescribedTopic(
                    number, self._labelled(topic.name), about, tuple(below), tuple(mentions)
                )
            )
        absent = [number for number in range(len(given.topics)) if number not in inside]
        return described + [_absent(number, given.topics[number], given) for number in absent]

    def _all_named(
        self,
        inside: dict[int, list[int]],
        division: Division,
        given: GivenTopics,
        counted: bool,
    ) -> dict[int, _Named]:
        """All topics, the clearest first; those without a name become one, unless they are
        `counted`."""
        best = {number: self._candidates(rows, breadth=0.85) for number, rows in inside.items()}
        clearest = sorted(
            inside, key=lambda number: (-best[number][0].score if best[number] else 0.0, number)
        )
        taken = {topic.name for topic in given.topics}
        named: dict[int, _Named] = {}
        for number in clearest:
            below = self._nameable(inside[number], division.subtopics, given)
            named[number] = (
                _Named(given.topics[number].name, [], below)
                if number < len(given.topics)
                else self._named(inside[number], best[number], below, taken)
            )
        unnamed = [number for number in inside if not named[number].name]
        if unnamed and not counted:
            unnamed = [self._joined(unnamed, inside, division)]
        for number in unnamed:
            below = self._nameable(inside[number], division.subtopics, given)
            if not counted:
                below = self._promoted(below, inside, named, division, taken)
                inside[number] = [row for part in below for row in part.rows]
            if below:
                named[number] = _Named(self._unnamed(taken, "general remarks"), [], below)
        return {number: topic for number, topic in named.items() if number in inside}

    def _promoted(
        self,
        below: Sequence[_Below],
        inside: dict[int, list[int]],
        named: dict[int, _Named],
        division: Division,
        taken: set[str],
    ) -> list[_Below]:
        """Without the parts of a topic without a name that have one and are large enough: they
        become topics."""
        left: list[_Below] = []
        least = least_rows(len(self._texts))
        for part in below:
            name, used = "", None
            if part.tells() and len(part.rows) >= least and len(named) < MOST:
                name, used = compose_name(self._phrases, part.best, self._language, taken)
            if not name or used is None:
                left.append(part)
                continue
            number = max(inside) + 1
            division.topics[part.rows] = number
            inside[number] = part.rows
            named[number] = _Named(name, [used], [part])
        return left

    def _joined(self, unnamed: list[int], inside: dict[int, list[int]], division: Division) -> int:
        """Topics without a name become one; its number."""
        first, *others = unnamed
        for other in others:
            division.topics[inside[other]] = first
            inside[first] = sorted(inside[first] + inside.pop(other))
        return first

    def _labelled(self, name: str) -> str:
        """A name, with its language where readers of the report may not be able to read it."""
        spoken = _SCRIPTS.get(language(name), "")
        if not spoken or base_language(self._report) in ("zh", "ja"):
            return name
        return f"{name} ({spoken})"

    def _nameable(self, inside: list[int], subtopics: Labels, given: GivenTopics) -> list[_Below]:
        """The subtopics of a topic, largest first. One whose sentences share no telling phrase
        joins the nearest."""
        while True:
            rows = members(subtopics, inside)
            nameable = [
                _Below(sub, rows_of_subtopic, self._candidates(rows_of_subtopic))
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

    def _candidates(
        self, rows: list[int], breadth: float = 0.7, least: float | None = None
    ) -> list[Candidate]:
        """Phrases for some sentences, by use and by how near they are to what sets the sentences
        apart from all others."""
        nearness = self._nearness_to(rows)
        comments = self._comments(rows)
        return candidates(
            self._phrases,
            comments,
            self._said.speakers,
            nearness,
            breadth,
            self._least(comments) if least is None else least,
        )

    def _least(self, comments: Sequence[int]) -> float:
        """The share of comments that a phrase must be in to name them: two long ones share many
        phrases by chance."""
        words = float(np.mean([len(self._said.comments[comment].split()) for comment in comments]))
        return float(np.clip(words * _PER_WORD, _RARELY, _OFTEN))

    def _comments(self, rows: Sequence[int]) -> list[int]:
        return sorted({self._said.comment_of[row] for row in rows})

    def _nearness_to(self, rows: list[int]) -> Callable[[str], float]:
        """How near phrases are to what sets some sentences apart from all others; no phrase is
        nearer than another to all sentences."""
        if len(rows) == len(self._texts):
            return lambda phrase: _TO_ALL

        apart = unit_length((self._meanings[rows] - self._middle).sum(axis=0, keepdims=True))[0]

        @cache
        def nearness(phrase: str) -> float:
            vector = unit_length(semantic_vectors([phrase]) - self._middle)[0]
            return max(0.0, round(float(vector @ apart), 3))

        return nearness

    def _named(
        self, inside: list[int], best: Sequence[Candidate], below: Sequence[_Below], taken: set[str]
    ) -> _Named:
        """The name of a topic; if its sentences share too little, what its largest part that can be
        named is about; empty if that is nothing, either."""
        if not best or best[0].score < _NAMING:
            best = self._shared_by_some(inside, below)
        name, used = compose_name(self._phrases, best, self._language, taken)
        return _Named(name, [used] if used else [], below)

    def _shared_by_some(self, inside: list[int], below: Sequence[_Below]) -> list[Candidate]:
        """Candidates for a topic whose sentences share little: what some of them share and is near
        to all in meaning, then what its largest part is about."""
        nearness = self._nearness_to(inside)
        shared = sorted(
            self._candidates(inside, breadth=0.85, least=_SOME),
            key=lambda c: (
                -round(c.score * nearness(self._phrases.written(c.phrase)) ** 2, 6),
                c.phrase.key,
            ),
        )
        large = [part for part in below if part.tells() and len(part.rows) * 2 > len(inside)]
        return [*shared, *(part.best[0] for part in large)]

    def _subtopics(
        self, topic: _Named, names: set[str], labels: Labels, given: GivenTopics, about: str
    ) -> Iterator[tuple[int, str, str]]:
        """Number, name and description of each; those without a name are one. `names` are those of
        all topics, `about` describes the one above."""
        taken, described = {*names, *given.names.values()}, {about}
        unnamed: list[int] = []
        for subtopic in topic.below:
            name = given.names.get(subtopic.number) or (
                topic.name if len(topic.below) == 1 else self._below(subtopic, taken, topic.used)
            )
            if not name:
                labels[subtopic.rows] = unnamed[0] if unnamed else subtopic.number
                unnamed.append(subtopic.number)
                continue
            sentence = self._sentence(subtopic.rows, name, described)
            described.add(sentence)
            yield subtopic.number, name, sentence
        if unnamed:
            is_all = len(unnamed) == len(topic.below)
            name = topic.name if is_all else self._unnamed(taken, "further remarks")
            yield unnamed[0], name, ""

    def _below(self, subtopic: _Below, taken: set[str], above: Sequence[Candidate]) -> str:
        fitting = [c for c in subtopic.best if c.score >= _FITTING]
        name, _ = compose_name(
            self._phrases, fitting, self._language, taken, above, self._comments(subtopic.rows)
        )
        return name

    def _unnamed(self, taken: set[str], kind: str) -> str:
        """What can't be named by a phrase that is shared: remarks of a general kind."""
        name = message(self._report, kind)
        numbered = (f"{name} ({number})" for number in count(2))
        free = next(candidate for candidate in chain([name], numbered) if candidate not in taken)
        taken.add(free)
        return free

    def _mentions(self, rows: list[int], topic: _Named) -> list[Mention]:
        """What several people's comments on a topic mention more often than all comments do,
        beside its name."""
        share = len(self._comments(rows)) / len(self._said.comments)
        speakers = self._said.speakers
        taken = set().union(*(keys(used.phrase) for used in topic.used))
        found: list[Mention] = []
        for candidate in self._candidates(rows, breadth=0.85, least=_SOME):
            people = len({speakers[comment] for comment in candidate.inside})
            inside = len(candidate.inside) / len(candidate.phrase.sentences)
            words = keys(candidate.phrase)
            if (
                candidate.score >= _MENTIONING
                and people >= _SEVERAL
                and inside >= _MORE_OFTEN * share
                and words.isdisjoint(taken)
            ):
                taken |= words
                found.append(Mention(self._phrases.written(candidate.phrase), people))
        return sorted(found[:_MENTIONED], key=lambda mention: -mention.people)

    def _sentence(self, rows: list[int], name: str, used: Container[str] = ()) -> str:
        """The most central sentence that stands alone and uses the name, as a description; nothing
        if none does, or if it is used already."""
        named = name.casefold().removesuffix("s")
        naming = [row for row in rows if named in self._texts[row].casefold()]
        alone = [row for row in naming if self._describes(row)]
        sentence = self._central(alone, naming) if alone else ""
        return "" if sentence in used else sentence

    def _describes(self, row: int) -> bool:
        """Whether a sentence can describe what others say, too: where people voted, what most of
        them surely agree with."""
        text = self._texts[row]
        if self._said.agreement and self._agreement(row) < _ACCEPTED:
            return False
        return stands_alone(as_statement(text)) and (
            not self._spoken or claim_score(text) >= _SURELY_CLAIMING
        )

    def _agreement(self, row: int) -> float:
        return self._said.agreement[self._said.comment_of[row]] if self._said.agreement else 0.0

    def _central(self, rows: list[int], others: list[int]) -> str:
        """The sentence that is most like all the others; among nearly equals a short one."""
        middle = unit_length(self._vectors[others].sum(axis=0, keepdims=True))[0]
        likeness = np.round(self._vectors[rows] @ middle, 3)
        scores = [
            float(likeness[at])
            - max(0, len(self._texts[row]) - 120) / 600
            + 0.1 * min(2.0, claim_score(self._texts[row]))
            + self._agreement(row)
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
