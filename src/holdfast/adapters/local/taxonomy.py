"""From comments to topics: sentences, their vectors, the division, names, and a place for every comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.adapters.local import clustering, layout
from holdfast.adapters.local.clustering import NOWHERE, Division, Labels
from holdfast.adapters.local.embeddings import Vectors, represent, unit
from holdfast.adapters.local.giving import Given, assign
from holdfast.adapters.local.naming import Candidate, candidates, compose, distinct, join
from holdfast.adapters.local.phrases import Phrases, collect
from holdfast.adapters.local.sentences import spans
from holdfast.adapters.local.statements import shortened, statement
from holdfast.adapters.local.wording import listed, say
from holdfast.adapters.local.words import UNKNOWN, languages, stop_words
from holdfast.adapters.local.worth import is_filler, weight
from holdfast.model.report.brief import Brief, GivenTopic
from holdfast.model.report.comment import Comment
from holdfast.model.report.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic

_ALL, _CHOSEN, _MORE = 5, 3, 5
"""Up to so many sentences of a comment are all kept; of more, three and every fifth, those that claim most."""
_FEW = 12
_TELLING = {True: 0.07, False: 0.05}
"""The least score of a single word, and of a phrase, that tells what sentences are about."""
_NAMING = 0.08
"""The least score of what can name a whole topic."""
_HELD = 40
"""A topic has at least one subtopic for so many sentences, named well or not."""


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence of a comment that is worth a claim."""

    comment: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What was kept of some comments, and how many sentences of theirs say anything."""

    kept: tuple[Part, ...]
    sentences: int


def parts(comments: Sequence[Comment], first: int = 0) -> Parts:
    """The sentences of comments that are worth a claim. `first` is the number of the first comment."""
    kept: list[Part] = []
    sentences = 0
    for number, comment in enumerate(comments, first):
        whole = [Part(number, start, end, comment.text[start:end]) for start, end in spans(comment.text)]
        telling = [part for part in whole if not is_filler(part.text)]
        sentences += len(telling)
        kept += chosen(telling)
    return Parts(tuple(kept), sentences)


def chosen(found: Sequence[Part]) -> Sequence[Part]:
    """The sentences of one comment to keep, in their order."""
    if len(found) <= _ALL:
        return found
    best = sorted(found, key=lambda part: (-round(weight(part.text), 3), part.start))[: _CHOSEN + len(found) // _MORE]
    return sorted(best, key=lambda part: part.start)


def build(comments: Sequence[Comment], found: Parts, brief: Brief) -> Clustering:
    """The taxonomy of all comments, and where each of their parts belongs."""
    if not found.kept:
        return Clustering((), tuple(_whole(comment) for comment in comments), notes=_notes(found, 0, brief))
    owners = np.array([part.comment for part in found.kept], np.intp)
    given = Given.of(brief.given)
    vectors = represent([part.text for part in found.kept] + given.texts)
    mixed = _with_comments(vectors[: len(owners)], owners)
    division, assigned = _divided(mixed, vectors[len(owners) :], owners, found, given, brief)
    described = _Describer(comments, found.kept, mixed, brief).describe(division, given)
    names, places = _ordered(described, division, owners)
    return Clustering(
        topics=names,
        placements=tuple(_placements(comments, found.kept, division.subtopics, places)),
        map=_map(comments, mixed, owners, division.topics),
        notes=_notes(found, assigned, brief),
    )


def _whole(comment: Comment) -> Placement:
    return Placement(comment.id, OTHER, 0, len(comment.text))


def _with_comments(vectors: Vectors, owners: NDArray[np.intp]) -> Vectors:
    """Half what a sentence says, half what its comment says: a sentence is understood with those around it."""
    sums = np.zeros((int(owners.max()) + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    return unit(vectors + unit(sums)[owners])


def _divided(
    vectors: Vectors, wanted: Vectors, owners: NDArray[np.intp], found: Parts, given: Given, brief: Brief
) -> tuple[Division, int]:
    """The division of all parts. Given topics come first; what they do not take is divided as it falls."""
    if not given.topics:
        return clustering.divide(vectors, owners, brief.topics), 0
    division = assign(vectors, wanted, [part.text for part in found.kept], given)
    rest = np.flatnonzero(division.topics == NOWHERE)
    asked = max(1, brief.topics - len(given.topics)) if brief.topics else 0
    if len(rest):
        other = clustering.divide(vectors[rest], owners[rest], asked)
        inside = other.topics != NOWHERE
        first, next_free = len(given.topics), int(division.subtopics.max(initial=-1)) + 1
        division.topics[rest[inside]] = other.topics[inside] + first
        division.subtopics[rest[inside]] = other.subtopics[inside] + max(next_free, given.subtopics)
    return division, len(np.unique(owners[np.setdiff1d(np.arange(len(owners)), rest)]))


@dataclass(frozen=True, slots=True)
class _Described:
    """A topic by its number, with its subtopics by theirs; ids come later."""

    number: int
    name: str
    description: str
    subtopics: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Below:
    """A subtopic that is still without a name: its sentences, and the phrases that could name it."""

    number: int
    rows: list[int]
    best: Sequence[Candidate]

    def tells(self) -> bool:
        """Whether a phrase says what it is about: a single word must do so for more of it."""
        return bool(self.best) and self.best[0].score >= _TELLING[self.best[0].is_word]


class _Describer:
    """Names and descriptions for the topics of a division."""

    def __init__(self, comments: Sequence[Comment], kept: Sequence[Part], vectors: Vectors, brief: Brief) -> None:
        self._texts = [part.text for part in kept]
        self._vectors = vectors
        self._brief = brief
        people = {comment.speaker: number for number, comment in reversed(list(enumerate(comments)))}
        self._speakers = [people[comments[part.comment].speaker] for part in kept]
        spoken = languages(self._texts)
        self._language = spoken[0] if spoken else UNKNOWN
        self._phrases: Phrases = collect(self._texts, stop_words(tuple(spoken)))

    def describe(self, division: Division, given: Given) -> list[_Described]:
        members = _members(division.topics)
        taken = {topic.name for topic in given.topics}
        described = []
        for number, inside in members.items():
            best = candidates(self._phrases, inside, self._speakers, breadth=0.85)
            below = self._nameable(inside, division.subtopics, given)
            wanted = given.topics[number] if number < len(given.topics) else None
            name, used = (wanted.name, []) if wanted else self._named(inside, best, below, taken)
            about = (wanted.description if wanted else "") or self._about(inside, best)
            described.append(_Described(number, name, about, tuple(self._subtopics(below, name, used, given))))
        absent = [number for number in range(len(given.topics)) if number not in members]
        return described + [_absent(number, given.topics[number], given) for number in absent]

    def _nameable(self, inside: list[int], subtopics: Labels, given: Given) -> list[_Below]:
        """The subtopics of a topic, largest first. One whose sentences share no telling phrase joins the nearest."""
        while True:
            rows = _members(subtopics, inside)
            below = [_Below(sub, held, candidates(self._phrases, held, self._speakers)) for sub, held in rows.items()]
            below.sort(key=lambda each: (-len(each.rows), each.number))
            poor = [each for each in below if each.number not in given.names and not each.tells()]
            if len(below) <= max(1, len(inside) // _HELD) or not poor:
                return below
            self._join(poor[-1], [each for each in below if each is not poor[-1]], subtopics)

    def _join(self, small: _Below, others: Sequence[_Below], subtopics: Labels) -> None:
        middles = unit(np.stack([self._vectors[each.rows].sum(axis=0) for each in [small, *others]]))
        subtopics[small.rows] = others[int(np.argmax(np.round(middles[1:] @ middles[0], 4)))].number

    def _named(
        self, inside: list[int], best: Sequence[Candidate], below: Sequence[_Below], taken: set[str]
    ) -> tuple[str, list[Candidate]]:
        """The name of a topic; if its sentences share too little, what its two largest parts are about."""
        if not best or best[0].score < _NAMING:
            parts = distinct([each.best[0] for each in below if each.best], 2)
            if len(parts) > 1 and (name := join(self._phrases, parts, self._language)) not in taken:
                taken.add(name)
                return name, parts
        name, used = compose(self._phrases, best, len(inside), self._language, taken)
        return (name, used) if name else (self._unnamed(inside, taken), [])

    def _about(self, inside: list[int], best: Sequence[Candidate]) -> str:
        about = [self._phrases.written(candidate.phrase) for candidate in distinct(best, 3)]
        if not about:
            return self._central(inside)
        return say(self._brief.language, "about", phrases=listed(self._brief.language, about))

    def _subtopics(
        self, below: Sequence[_Below], topic: str, used: Sequence[Candidate], given: Given
    ) -> Iterator[tuple[int, str, str]]:
        taken = {topic, *given.names.values()}
        for each in below:
            name = given.names.get(each.number) or (topic if len(below) == 1 else self._below(each, taken, used))
            yield each.number, name, self._central(each.rows)

    def _below(self, each: _Below, taken: set[str], above: Sequence[Candidate]) -> str:
        name, _ = compose(self._phrases, each.best, len(each.rows), self._language, taken, above)
        return name or self._unnamed(each.rows, taken)

    def _unnamed(self, rows: list[int], taken: set[str]) -> str:
        """The beginning of the most central sentence, where no phrase is shared."""
        name = shortened(self._central(rows), 40)
        while name in taken:
            name += " …"
        taken.add(name)
        return name

    def _central(self, rows: list[int]) -> str:
        """The sentence that is most like all the others; among nearly equals a short one."""
        middle = unit(self._vectors[rows].sum(axis=0, keepdims=True))[0]
        likeness = np.round(self._vectors[rows] @ middle, 3)
        scores = [float(likeness[at]) - max(0, len(self._texts[row]) - 120) / 600 for at, row in enumerate(rows)]
        return shortened(statement(self._texts[rows[int(np.argmax(scores))]]), 160)


def _members(labels: Labels, among: Sequence[int] | None = None) -> dict[int, list[int]]:
    """The rows of each cluster; clusters in order of their numbers."""
    members: dict[int, list[int]] = {}
    for row in range(len(labels)) if among is None else among:
        label = int(labels[row])
        if label != NOWHERE:
            members.setdefault(label, []).append(row)
    return dict(sorted(members.items()))


def _absent(number: int, topic: GivenTopic, given: Given) -> _Described:
    """A topic that was asked for and that nobody speaks about."""
    below = tuple((sub, name, "") for sub, name in given.names.items() if given.topic_of[sub] == number)
    return _Described(number, topic.name, topic.description, below or ((-1 - number, topic.name, ""),))


def _ordered(
    described: Sequence[_Described], division: Division, owners: Labels
) -> tuple[tuple[Topic, ...], dict[int, str]]:
    """Topics with their ids, most comments first, and the id of each subtopic by its number."""
    size = {number: len(np.unique(owners[rows])) for number, rows in _members(division.topics).items()}
    part = {number: len(np.unique(owners[rows])) for number, rows in _members(division.subtopics).items()}
    topics, ids = [], {}
    for at, each in enumerate(sorted(described, key=lambda d: (-size.get(d.number, 0), d.number)), 1):
        below = []
        for within, (sub, name, about) in enumerate(
            sorted(each.subtopics, key=lambda s: (-part.get(s[0], 0), s[0])), 1
        ):
            ids[sub] = f"t{at}.{within}"
            below.append(Subtopic(ids[sub], name, about))
        topics.append(Topic(f"t{at}", each.name, each.description, tuple(below)))
    return tuple(topics), ids


def _placements(
    comments: Sequence[Comment], kept: Sequence[Part], subtopics: Labels, ids: dict[int, str]
) -> Iterator[Placement]:
    """In the order of the comments. One that says nothing is placed as a whole."""
    by_comment: dict[int, list[Placement]] = {}
    for part, subtopic in zip(kept, subtopics.tolist(), strict=True):
        placement = Placement(comments[part.comment].id, ids.get(subtopic, OTHER), part.start, part.end)
        by_comment.setdefault(part.comment, []).append(placement)
    for number, comment in enumerate(comments):
        yield from by_comment.get(number) or [_whole(comment)]


def _map(
    comments: Sequence[Comment], vectors: Vectors, owners: NDArray[np.intp], topics: Labels
) -> tuple[tuple[str, float, float], ...]:
    """A point for each comment, on the island of the topic it speaks about most."""
    sums = np.zeros((len(comments), vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    most = np.full(len(comments), NOWHERE, np.intp)
    for comment, labels in _by_owner(owners, topics):
        counts = Counter(label for label in labels if label != NOWHERE)
        if counts:
            most[comment] = min(counts, key=lambda label: (-counts[label], label))
    islands = np.unique(most, return_inverse=True)[1]
    points = layout.positions(unit(sums), islands)
    return tuple((comment.id, float(x), float(y)) for comment, (x, y) in zip(comments, points, strict=True))


def _by_owner(owners: NDArray[np.intp], topics: Labels) -> Iterable[tuple[int, list[int]]]:
    grouped: dict[int, list[int]] = {}
    for owner, topic in zip(owners.tolist(), topics.tolist(), strict=True):
        grouped.setdefault(owner, []).append(topic)
    return grouped.items()


def _notes(found: Parts, assigned: int, brief: Brief) -> tuple[str, ...]:
    """What was weaker than usual, in the language of the report."""
    speaking = len({part.comment for part in found.kept})
    spoken = languages(part.text for part in found.kept)
    notes = []
    if speaking < _FEW:
        notes.append(say(brief.language, "few", count=speaking))
    if spoken and spoken[0] != "en":
        notes.append(say(brief.language, "foreign"))
    if len(found.kept) * 2 < found.sentences:
        notes.append(say(brief.language, "selected", kept=len(found.kept), all=found.sentences))
    if brief.given:
        notes.append(say(brief.language, "given", count=assigned))
    return tuple(notes)
