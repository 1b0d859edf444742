"""Summaries that only use people's own words: the claims that most stand behind, and that are least
like each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np

from holdfast.apps.report.local.embeddings import semantic_vectors, unit_length
from holdfast.apps.report.local.messages import message, with_people
from holdfast.apps.report.local.sentence_value import claim_score, is_filler, stands_alone
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.local.tokenizing import is_unspaced
from holdfast.apps.report.local.vote_findings import vote_findings
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.opinion import VoteEvidence
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Topic
from holdfast.apps.report.opinions import at_least
from holdfast.apps.report.voting import FEWEST as FEWEST_VOTES

_SENTENCES = 4
FEWEST, MOST = 5, 8
"""How many findings there are about everything, if there are enough claims."""
_CONSIDERED = 400
"""The most supported groups are considered; those behind them are said by one person each."""
_LONGEST = 170
_SUPPORT = 8.0
"""How much people count beside wording: who says it better does not stand before who is more."""
_END = tuple(".!?…。！？؟")


def summarise(topic: Topic, groups: Sequence[ClaimGroup], language: str) -> list[Sentence]:
    """A topic in a few of its claims, each from another subtopic as far as possible."""
    names = {subtopic.id: subtopic.name for subtopic in topic.subtopics}
    return [_of_subtopic(group, names, language) for group in leading_groups(groups, _SENTENCES)]


def _of_subtopic(group: ClaimGroup, names: Mapping[str, str], language: str) -> Sentence:
    name = names.get(group.subtopic, "") if len(names) > 1 else ""
    lead = name + message(language, "colon") if name else ""
    return Sentence(lead + _claim(group, language), (group.id,))


def _claim(group: ClaimGroup, language: str) -> str:
    """A claim, ending like a sentence, with what stands behind it: votes, or several people."""
    people = len(group.speakers)
    statement = shortened(group.statement, _LONGEST)
    if people < 2 and not is_voted(group):
        return statement if statement.endswith(_END) else statement + _stop(statement)
    bare = statement.rstrip(" .。")
    return bare + _support(group, language) + _stop(bare)


def _support(group: ClaimGroup, language: str) -> str:
    if group.votes and is_voted(group):
        return message(language, "voted", agrees=group.votes.agrees, cast=group.votes.cast)
    return with_people(language, len(group.speakers))


def is_voted(group: ClaimGroup) -> bool:
    """Whether enough people voted on a claim for its votes to say more than its speakers."""
    return group.votes is not None and group.votes.cast >= FEWEST_VOTES


def _stop(text: str) -> str:
    return "。" if is_unspaced(text) else "."


def overview(
    topics: Sequence[Topic],
    groups: Mapping[str, Sequence[ClaimGroup]],
    language: str,
    votes: VoteEvidence | None = None,
) -> list[Sentence]:
    """What people voted for, where they voted. Else, or if that is little, the topics most people
    speak about, each with the claim that most stand behind."""
    voted = vote_findings(votes, language) if votes else []
    if len(voted) >= FEWEST:
        return voted
    cited = {id for finding in voted for id in finding.cites}
    raised = [
        finding for finding in _raised(topics, groups, language) if cited.isdisjoint(finding.cites)
    ]
    return voted + (raised[: MOST - len(voted)] if voted else raised)


def _raised(
    topics: Sequence[Topic], groups: Mapping[str, Sequence[ClaimGroup]], language: str
) -> list[Sentence]:
    """The topics most people speak about, then further claims up to five."""
    people = {
        topic.id: len({s for group in groups.get(topic.id, ()) for s in group.speakers})
        for topic in topics
    }
    spoken = [topic for topic in topics if people[topic.id] and topic.id != OTHER]
    order = sorted(spoken, key=lambda topic: (-people[topic.id], topics.index(topic)))[:MOST]
    best = {topic.id: leading_groups(groups[topic.id], 3, topic.name) for topic in order}
    findings = [_finding(topic, best[topic.id][0], people[topic.id], language) for topic in order]
    further = [
        Sentence(topic.name + message(language, "colon") + _claim(group, language), (group.id,))
        for rank in (1, 2)
        for topic in order
        for group in best[topic.id][rank : rank + 1]
    ]
    return findings + further[: max(0, FEWEST - len(findings))]


def _finding(topic: Topic, group: ClaimGroup, people: int, language: str) -> Sentence:
    supported = len(group.speakers) > 1 or is_voted(group)
    key = "raised by one" if people == 1 else "raised" if supported else "example"
    claim = _claim(group, language)
    return Sentence(
        message(language, key, topic=topic.name, people=people, claim=claim), (group.id,)
    )


def leading_groups(groups: Sequence[ClaimGroup], count: int, name: str = "") -> list[ClaimGroup]:
    """The groups that tell most about all of them: well supported, typical, worded as a claim,
    about what they are named for, unlike one another."""
    named = name.casefold().removesuffix("s")
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
        + 0.5 * claim_score(group.statement)
        + 0.6 * stands_alone(group.statement)
        + 0.5 * bool(named and named in group.statement.casefold())
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
    """How much support counts: votes where people voted, else the people who say it; less for a
    slogan, which many happen to write alike."""
    if group.votes and is_voted(group):
        return 4 * at_least(group.votes.agrees, group.votes.cast)
    slogan = len(group.statement) < 18 and claim_score(group.statement) < 1
    return (0.5 if slogan else _SUPPORT) * log1p(len(group.speakers))


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
