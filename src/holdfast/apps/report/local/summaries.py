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
_AGREED, _HELD = 8.0, 0.35
"""How much voters count, and the share of them that is worth no more than one person's word."""
_SAID, _NEVER = 0.8, -99.0
"""How alike a claim is to one that is chosen for it to say the same, and what it adds then."""
_SPEECH, _SURELY_CLAIMING = 10, 1.35
"""Who makes more claims than this was recorded; of those, only clear ones are an example."""
_FEW = 3
"""Of fewer findings, those whose example is about something else are better than none."""
_UNCLEAR = 2
"""So many claims speak for a topic of which none is clear."""
_CLAIMING = 1.3
"""The least score of a claim of one person that speaks for a topic without using its name."""
_ABOUT = 0.2
"""How near a statement must be to a name in meaning to be about what it names."""
_END = tuple(".!?…。！？؟")


def summarise(topic: Topic, groups: Sequence[ClaimGroup], language: str) -> list[Sentence]:
    """A topic in a few of its claims, each from another subtopic as far as possible."""
    ours = tuple(message(language, key) for key in ("general remarks", "further remarks"))
    names = {
        subtopic.id: "" if subtopic.name.startswith(ours) else subtopic.name
        for subtopic in topic.subtopics
    }
    return [
        _of_subtopic(group, names, language) for group in leading_groups(groups, _SENTENCES, names)
    ]


def _of_subtopic(group: ClaimGroup, names: Mapping[str, str], language: str) -> Sentence:
    """A claim, led by the name of its subtopic if it is about that."""
    name = names.get(group.subtopic, "") if len(names) > 1 else ""
    is_led = name and bool(_are_about([group.statement], [name])[0])
    lead = name + message(language, "colon") if is_led else ""
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
    unnamed = message(language, "general remarks")
    spoken = [topic for topic in topics if people[topic.id] and topic.id != OTHER]
    named = [topic for topic in spoken if not topic.name.startswith(unnamed)] or spoken
    order = sorted(named, key=lambda topic: (-people[topic.id], topics.index(topic)))[:MOST]
    best = {topic.id: _examples(topic, groups[topic.id]) for topic in order}
    if _is_speech(groups):
        return _raised_in_speech(order, groups, best, people, language)
    if sum(map(bool, best.values())) < _FEW:
        for topic in order:
            best[topic.id] = best[topic.id] or leading_groups(groups[topic.id], 1, {})
    findings = [
        _finding(topic, best[topic.id][0], people[topic.id], language)
        for topic in order
        if best[topic.id]
    ]
    further = [
        Sentence(topic.name + message(language, "colon") + _claim(group, language), (group.id,))
        for rank in (1, 2)
        for topic in order
        for group in best[topic.id][rank : rank + 1]
    ]
    return findings + further[: max(0, FEWEST - len(findings))]


def _is_speech(groups: Mapping[str, Sequence[ClaimGroup]]) -> bool:
    claims = [group for those in groups.values() for group in those]
    return len(claims) > _SPEECH * len({speaker for group in claims for speaker in group.speakers})


def _raised_in_speech(
    topics: Sequence[Topic],
    groups: Mapping[str, Sequence[ClaimGroup]],
    best: Mapping[str, Sequence[ClaimGroup]],
    people: Mapping[str, int],
    language: str,
) -> list[Sentence]:
    """How many speak about each topic, with an example only where somebody clearly claims
    something: most recorded sentences need those around them."""
    everybody = len({s for those in groups.values() for group in those for s in group.speakers})
    findings = []
    for topic in topics:
        clear = [group for group in best[topic.id] if _is_clear(group)]
        findings.append(
            _finding(topic, clear[0], people[topic.id], language)
            if clear
            else _mentioned(topic, groups[topic.id], people[topic.id], everybody, language)
        )
    return findings


def _is_clear(group: ClaimGroup) -> bool:
    return len(group.speakers) > 1 or claim_score(group.statement) >= _SURELY_CLAIMING


def _mentioned(
    topic: Topic, groups: Sequence[ClaimGroup], people: int, everybody: int, language: str
) -> Sentence:
    names = {subtopic.id: topic.name for subtopic in topic.subtopics}
    text = message(
        language, "raised without example", topic=topic.name, people=people, all=everybody
    )
    return Sentence(text, tuple(group.id for group in leading_groups(groups, 1, names)))


def _examples(topic: Topic, groups: Sequence[ClaimGroup]) -> list[ClaimGroup]:
    """Up to three claims that stand for a topic: only such as are about what it is named for."""
    names = {subtopic.id: topic.name for subtopic in topic.subtopics}
    leading = leading_groups(groups, 3, names)
    about = _are_about([group.statement for group in leading], [topic.name] * len(leading))
    return [group for group, is_about in zip(leading, about, strict=True) if is_about]


def _finding(topic: Topic, group: ClaimGroup, people: int, language: str) -> Sentence:
    supported = len(group.speakers) > 1 or is_voted(group)
    key = "raised by one" if people == 1 else "raised" if supported else "example"
    claim = _claim(group, language)
    return Sentence(
        message(language, key, topic=topic.name, people=people, claim=claim), (group.id,)
    )


def leading_groups(
    groups: Sequence[ClaimGroup], count: int, names: Mapping[str, str]
) -> list[ClaimGroup]:
    """The groups that tell most about all of them: well supported, typical, worded as a claim,
    about what their subtopic is named for (`names`), unlike one another."""
    considered = _considered(groups, names)
    if not considered:
        return []
    statements = [group.statement for group in considered]
    vectors = semantic_vectors(statements)
    middle = unit_length(vectors.sum(axis=0, keepdims=True))[0]
    about = _are_about(statements, [names.get(group.subtopic, "") for group in considered])
    merit = [
        _standing(group)
        + float(vectors[at] @ middle)
        + 0.5 * claim_score(group.statement)
        + 0.6 * stands_alone(group.statement)
        + about[at]
        - 0.6 * (len(group.statement) > _LONGEST)
        for at, group in enumerate(considered)
    ]
    chosen: list[int] = []
    while len(chosen) < min(count, len(considered)):
        scores = [
            _marginal(at, merit, vectors, considered, chosen) for at in range(len(considered))
        ]
        best = int(np.argmax(np.round(scores, 4)))
        if scores[best] <= _NEVER:
            break
        chosen.append(best)
    return [considered[at] for at in chosen]


def _considered(groups: Sequence[ClaimGroup], names: Mapping[str, str]) -> list[ClaimGroup]:
    """The groups that can speak for others, if there are such: what is supported, what is
    understood alone and is about the name or claims something; in the script of most."""
    considered = list(groups[:_CONSIDERED])
    unspaced = [is_unspaced(group.statement) for group in considered]
    mostly = sum(unspaced) * 2 > len(unspaced)
    considered = [
        group for group, is_so in zip(considered, unspaced, strict=True) if is_so == mostly
    ]
    telling = [group for group in considered if not is_filler(group.statement)]
    about = _are_about(
        [group.statement for group in telling], [names.get(group.subtopic, "") for group in telling]
    )
    clear = [
        group
        for group, is_about in zip(telling, about, strict=True)
        if len(group.speakers) > 1
        or is_voted(group)
        or (
            stands_alone(group.statement)
            and (is_about or claim_score(group.statement) >= _CLAIMING)
        )
    ]
    return clear or telling[:_UNCLEAR] or considered[:_UNCLEAR]


def _are_about(statements: Sequence[str], names: Sequence[str]) -> list[bool]:
    """For each statement whether it is about what the name beside it says: it uses the name, or is
    near to it in meaning."""
    row_of = {name: row for row, name in enumerate(dict.fromkeys(names))}
    statement_vectors = semantic_vectors(statements)
    name_vectors = semantic_vectors(list(row_of))[[row_of[name] for name in names]]
    near = np.round((statement_vectors * name_vectors).sum(axis=1), 3) >= _ABOUT
    return [
        bool(name) and (_uses(statement, name) or (bool(is_near) and not is_unspaced(name)))
        for statement, name, is_near in zip(statements, names, near, strict=True)
    ]


def _uses(statement: str, name: str) -> bool:
    return name.casefold().removesuffix("s") in statement.casefold()


def _standing(group: ClaimGroup) -> float:
    """How much support counts: the people who say it, less for a slogan, which many happen to write
    alike; and the voters who agree, where people voted."""
    slogan = len(group.statement) < 18 and claim_score(group.statement) < 1
    standing = (0.5 if slogan else _SUPPORT) * log1p(len(group.speakers))
    if group.votes and is_voted(group):
        standing += _AGREED * (at_least(group.votes.agrees, group.votes.cast) - _HELD)
    return standing


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
        return _NEVER
    if not chosen:
        return merit[at]
    likeness = float((vectors[list(chosen)] @ vectors[at]).max())
    if likeness >= _SAID:
        return _NEVER
    repeated = sum(groups[other].subtopic == groups[at].subtopic for other in chosen)
    return merit[at] - 1.2 * max(0.0, likeness) - 0.8 * repeated
