"""From comments to topics: sentences, their vectors, the division, names, and a place for every
comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.apps.report.local import clustering, map_layout
from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Labels
from holdfast.apps.report.local.clustering import Division
from holdfast.apps.report.local.embeddings import Vectors, sentence_vectors, unit_length
from holdfast.apps.report.local.given_topics import GivenTopics, assign
from holdfast.apps.report.local.messages import base_language, message
from holdfast.apps.report.local.sentence_encoder import SentenceEncoder
from holdfast.apps.report.local.sentence_value import claim_score, is_filler, is_sentence
from holdfast.apps.report.local.sentences import spans
from holdfast.apps.report.local.tokenizing import UNKNOWN, language, languages
from holdfast.apps.report.local.topic_descriptions import DescribedTopic, Describer, Said, members
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.opinions import at_least
from holdfast.apps.report.voting import FEWEST as FEWEST_VOTES
from holdfast.apps.report.voting import is_voted_whole

_SHORT, _ALL, _CHOSEN, _MORE = 2, 5, 3, 5
"""Up to two parts of a comment are kept as they are; up to five, those that are sentences; of more,
three and every fifth, those that claim most."""
_CLAIMING = 0.7
"""The least score of a sentence of a long comment: tales and asides have less."""
_FEW = 12
_SECOND = 0.15
"""The share of comments in a second language from which they are in several."""


@dataclass(frozen=True, slots=True)
class SentencePart:
    """A sentence of a comment that is worth a claim."""

    comment: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """What was kept of some comments, and how many sentences of theirs say anything."""

    kept: tuple[SentencePart, ...]
    sentences: int


def split_comments(comments: Sequence[Comment], first: int = 0) -> SentenceParts:
    """The sentences of comments that are worth a claim. `first` is the number of the first
    comment."""
    kept_parts: list[SentencePart] = []
    sentences = 0
    for number, comment in enumerate(comments, first):
        parts = [
            SentencePart(number, start, end, comment.text[start:end])
            for start, end in _parts_of(comment)
        ]
        telling = [part for part in parts if not is_filler(part.text)]
        sentences += len(telling)
        kept_parts += most_telling(telling)
    return SentenceParts(tuple(kept_parts), sentences)


def _parts_of(comment: Comment) -> list[tuple[int, int]]:
    """The sentences of a comment. One that people voted on stays whole: that is what they voted
    on."""
    sentences = spans(comment.text)
    if sentences and is_voted_whole(comment):
        return [(sentences[0][0], max(end for _, end in sentences))]
    return sentences


def most_telling(sentence_parts: Sequence[SentencePart]) -> Sequence[SentencePart]:
    """The sentences of one comment to keep, in their order. Of a long one, spoken most often, only
    what is a sentence: the rest is no claim."""
    if len(sentence_parts) <= _SHORT:
        return sentence_parts
    complete = [part for part in sentence_parts if is_sentence(part.text)]
    if len(sentence_parts) <= _ALL:
        return complete or sentence_parts
    ranked = sorted(complete, key=lambda part: (-round(claim_score(part.text), 3), part.start))
    claiming = [part for part in ranked if claim_score(part.text) >= _CLAIMING] or ranked[:1]
    best = claiming[: _CHOSEN + len(sentence_parts) // _MORE]
    return sorted(best, key=lambda part: part.start)


def find_topics(
    comments: Sequence[Comment],
    sentence_parts: SentenceParts,
    brief: Brief,
    encoder: SentenceEncoder | None = None,
) -> Clustering:
    """The taxonomy of all comments, and where each of their parts belongs."""
    if not sentence_parts.kept:
        return Clustering(
            (),
            tuple(_whole(comment) for comment in comments),
            notes=_notes(sentence_parts, 0, brief),
        )
    owners = np.array([part.comment for part in sentence_parts.kept], np.intp)
    given = GivenTopics.of(brief.given)
    speaking = np.unique(owners)
    texts = [comments[number].text for number in speaking]
    parts = [part.text for part in sentence_parts.kept]
    vectors = sentence_vectors([*parts, *given.texts, *texts], encoder)
    sentences, rest = vectors[: len(owners)], vectors[len(owners) :]
    given_vectors, comment_vectors = rest[: len(given.texts)], rest[len(given.texts) :]
    comment_of = np.searchsorted(speaking, owners)
    mixed = _with_comments(sentences, comment_vectors[comment_of])
    division, assigned = _divided(mixed, given_vectors, owners, sentence_parts, given, brief)
    said = Said(
        parts,
        comment_of.tolist(),
        texts,
        [comments[number].speaker for number in speaking],
        _agreement([comments[number] for number in speaking]),
    )
    describer = Describer(said, mixed, brief.language)
    described = describer.describe(division, given, counted=brief.topics > 0)
    names, places = _ordered(described, division, owners)
    return Clustering(
        topics=names,
        placements=tuple(_placements(comments, sentence_parts.kept, division.subtopics, places)),
        map=_map(comments, mixed, owners, division.topics),
        notes=_notes(sentence_parts, assigned, brief),
    )


def _agreement(comments: Sequence[Comment]) -> list[float] | None:
    """Which share of its voters surely agrees with each comment; nothing where nobody voted."""
    ballots = [
        (
            comment.agrees or 0,
            (comment.agrees or 0) + (comment.disagrees or 0) + (comment.passes or 0),
        )
        for comment in comments
    ]
    if all(cast < FEWEST_VOTES for _, cast in ballots):
        return None
    return [at_least(agrees, cast) for agrees, cast in ballots]


def _whole(comment: Comment) -> Placement:
    return Placement(comment.id, OTHER, 0, len(comment.text))


def _with_comments(sentences: Vectors, comments: Vectors) -> Vectors:
    """Half what a sentence says, half what its comment says: a sentence is understood with those
    around it, also with those that make no claim."""
    return unit_length(sentences + comments)


def _divided(
    vectors: Vectors,
    given_vectors: Vectors,
    owners: NDArray[np.intp],
    sentence_parts: SentenceParts,
    given: GivenTopics,
    brief: Brief,
) -> tuple[Division, int]:
    """The division of all parts. Given topics come first; what they do not take is divided as it
    falls."""
    if not given.topics:
        return clustering.divide(vectors, owners, brief.topics), 0
    division = assign(vectors, given_vectors, [part.text for part in sentence_parts.kept], given)
    rest = np.flatnonzero(division.topics == UNASSIGNED)
    topic_count = max(1, brief.topics - len(given.topics)) if brief.topics else 0
    if len(rest):
        rest_division = clustering.divide(vectors[rest], owners[rest], topic_count)
        inside = rest_division.topics != UNASSIGNED
        first, next_free = len(given.topics), int(division.subtopics.max(initial=-1)) + 1
        division.topics[rest[inside]] = rest_division.topics[inside] + first
        division.subtopics[rest[inside]] = rest_division.subtopics[inside] + max(
            next_free, given.subtopics
        )
    return division, len(np.unique(owners[np.setdiff1d(np.arange(len(owners)), rest)]))


def _ordered(
    described: Sequence[DescribedTopic], division: Division, owners: Labels
) -> tuple[tuple[Topic, ...], dict[int, str]]:
    """Topics with their ids, most comments first, and the id of each subtopic by its number."""
    size = {
        number: len(np.unique(owners[rows])) for number, rows in members(division.topics).items()
    }
    part = {
        number: len(np.unique(owners[rows])) for number, rows in members(division.subtopics).items()
    }
    topics, ids = [], {}
    for at, topic in enumerate(
        sorted(described, key=lambda d: (-size.get(d.number, 0), d.number)), 1
    ):
        below = []
        for within, (sub, name, about) in enumerate(
            sorted(topic.subtopics, key=lambda s: (-part.get(s[0], 0), s[0])), 1
        ):
            ids[sub] = f"t{at}.{within}"
            below.append(Subtopic(ids[sub], name, about))
        topics.append(
            Topic(f"t{at}", topic.name, topic.description, tuple(below), mentions=topic.mentions)
        )
    return tuple(topics), ids


def _placements(
    comments: Sequence[Comment],
    kept_parts: Sequence[SentencePart],
    subtopics: Labels,
    ids: dict[int, str],
) -> Iterator[Placement]:
    """In the order of the comments. One that says nothing is placed as a whole."""
    by_comment: dict[int, list[Placement]] = {}
    for part, subtopic in zip(kept_parts, subtopics.tolist(), strict=True):
        placement = Placement(
            comments[part.comment].id, ids.get(subtopic, OTHER), part.start, part.end
        )
        by_comment.setdefault(part.comment, []).append(placement)
    for number, comment in enumerate(comments):
        yield from by_comment.get(number) or [_whole(comment)]


def _map(
    comments: Sequence[Comment], vectors: Vectors, owners: NDArray[np.intp], topics: Labels
) -> tuple[tuple[str, float, float], ...]:
    """A point for each comment, on the island of the topic it speaks about most."""
    sums = np.zeros((len(comments), vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    most = np.full(len(comments), UNASSIGNED, np.intp)
    for comment, labels in _by_owner(owners, topics):
        counts = Counter(label for label in labels if label != UNASSIGNED)
        if counts:
            most[comment] = min(counts, key=lambda label: (-counts[label], label))
    islands = np.unique(most, return_inverse=True)[1]
    points = map_layout.positions(unit_length(sums), islands)
    return tuple(
        (comment.id, float(x), float(y)) for comment, (x, y) in zip(comments, points, strict=True)
    )


def _by_owner(owners: NDArray[np.intp], topics: Labels) -> Iterable[tuple[int, list[int]]]:
    grouped: dict[int, list[int]] = {}
    for owner, topic in zip(owners.tolist(), topics.tolist(), strict=True):
        grouped.setdefault(owner, []).append(topic)
    return grouped.items()


def _notes(sentence_parts: SentenceParts, assigned: int, brief: Brief) -> tuple[str, ...]:
    """What was weaker than usual, in the language of the report."""
    speaking = len({part.comment for part in sentence_parts.kept})
    spoken = languages(part.text for part in sentence_parts.kept)
    notes = []
    if speaking < _FEW:
        notes.append(message(brief.language, "few", count=speaking))
    if spoken and spoken[0] != "en" and base_language(brief.language) in ("en", UNKNOWN):
        notes.append(message(brief.language, "foreign"))
    if _in_several_languages([part.text for part in sentence_parts.kept]):
        notes.append(message(brief.language, "several languages"))
    if len(sentence_parts.kept) * 2 < sentence_parts.sentences:
        notes.append(
            message(
                brief.language,
                "selected",
                kept=len(sentence_parts.kept),
                all=sentence_parts.sentences,
            )
        )
    if brief.given:
        notes.append(message(brief.language, "given", count=assigned))
    return tuple(notes)


def _in_several_languages(texts: Sequence[str]) -> bool:
    counts = Counter(code for code in map(language, texts) if code != UNKNOWN)
    return any(count >= _SECOND * counts.total() for _, count in counts.most_common()[1:])
