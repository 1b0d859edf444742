"""Summaries that only use people's own words: the claims that most stand behind, and that are least
like each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np

from holdfast.apps.report.local.embeddings import semantic_vectors, unit_length
from holdfast.apps.report.local.messages import message, with_people
from holdfast.apps.report.local.sentence_value import claim_score, is_filler
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.local.tokenizing import is_unspaced
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Topic

_SENTENCES = 4
FEWEST, MOST = 5, 8
"""How many findings there are about everything, if there are enough claims."""
_CONSIDERED = 400
"""The most supported groups are considered; those behind them are said by one person each."""
_LONGEST = 170
_END = tuple(".!?…。！？؟")


def summarise(topic: Topic, groups: Sequence[ClaimGroup], language: str) -> list[Sentence]:
    """A topic in a few of its claims, each from another subtopic as far as possible."""
    names = {subtopic.id: subtopic.name for subtopic in topic.subtopics}
    return [_of_subtopic(group, names, language) for group in leading_groups(groups, _SENTENCES)]


def _of_subtopic(group: ClaimGroup, names: Mapping[str, str], language: str) -> Sentence:
    name = names.get(group.subtopic, "") if len(names) > 1 else ""
    lead = name + message(language, "colon") if name else ""
    return Sentence(lead + _claim(group, language), (group.id,))


def _claim(group: ClaimGroup, language: str, always: bool = False) -> str:
    """A claim, with how many people make it if they are several, ending like a sentence."""
    people = len(group.speakers)
    statement = shortened(group.statement, _LONGEST)
    if people < 2 and not always:
        return statement if statement.endswith(_END) else statement + _stop(statement)
    bare = statement.rstrip(" .。")
    return bare + with_people(language, people) + _stop(bare)


def _stop(text: str) -> str:
    return "。" if is_unspaced(text) else "."


def overview(
    topics: Sequence[Topic], groups: Mapping[str, Sequence[ClaimGroup]], language: str
) -> list[Sentence]:
    """The topics most people speak about, each with the claim most of them make; then further
    claims up to five."""
    people = {
        topic.id: len({s for group in groups.get(topic.id, ()) for s in group.speakers})
        for topic in topics
    }
    spoken = [topic for topic in topics if people[topic.id] and topic.id != OTHER]
    order = sorted(spoken, key=lambda topic: (-people[topic.id], topics.index(topic)))[:MOST]
    best = {topic.id: leading_groups(groups[topic.id], 3) for topic in order}
    findings = [_finding(topic, best[topic.id][0], people[topic.id], language) for topic in order]
    further = [
        Sentence(topic.name + message(language, "colon") + _claim(group, language), (group.id,))
        for rank in (1, 2)
        for topic in order
        for group in best[topic.id][rank : rank + 1]
    ]
    return findings + further[: max(0, FEWEST - len(findings))]


def _finding(topic: Topic, group: ClaimGroup, people: int, language: str) -> Sentence:
    key = "raised by one" if people == 1 else "raised" if len(group.speakers) > 1 else "example"
    claim = _claim(group, language)
    return Sentence(
        message(language, key, topic=topic.name, people=people, claim=claim), (group.id,)
    )


def leading_groups(groups: Sequence[ClaimGroup], count: int) -> list[ClaimGroup]:
    """The groups that tell most about all of them: well supported, typical, worded as a claim,
    unlike one another."""
    considered = [
        group for group in groups[:_CONSIDERED] if not is_filler(group.statement)
    ] or list(groups[:_CONSIDERED])
    if not considered:
        return []
    vectors = semantic_vectors([group.statement for group in considered])
    middle = unit_length(vectors.sum(axis=0, keepdims=True))[0]
    merit = [
        _standing(group)
        + float(vectors[at] @ middle)
        + 0.35 * claim_score(group.statement)
        - 0.6 * (len(group.statement) > _LONGEST)
        for at, group in enumerate(considered)
    ]
    chosen: list[int] = []
    while len(chosen) < min(count, len(considered)):
        scores = [
            _marginal(at, merit, vectors, considered, chosen) for at in range(len(considered))
        ]
        chosen.append(int(np.argmax(np.round(scores, 4))))
    return [considered[at] for at in chosen]


def _standing(group: ClaimGroup) -> float:
    """How much the number of people counts: less for a slogan, which many happen to write alike."""
    slogan = len(group.statement) < 18 and claim_score(group.statement) < 1
    return (0.5 if slogan else 1.6) * log1p(len(group.speakers))


def _marginal(
    at: int,
    merit: Sequence[float],
    vectors: np.ndarray,
    groups: Sequence[ClaimGroup],
    chosen: Sequence[int],
) -> float:
    """What one more group would add: less if it is like one that is chosen or from the same
    subtopic."""
    if at in chosen:
        return -9.0
    if not chosen:
        return merit[at]
    likeness = float((vectors[list(chosen)] @ vectors[at]).max())
    repeated = sum(groups[other].subtopic == groups[at].subtopic for other in chosen)
    return merit[at] - 1.2 * max(0.0, likeness) - 0.8 * repeated
