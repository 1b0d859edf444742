"""Summaries that only use people's own words: the claims that most stand behind, and that are least
like each other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import log1p
from statistics import mean

import numpy as np

from holdfast.apps.report.local.embeddings import semantic_vectors, unit_length
from holdfast.apps.report.local.messages import listed, message, with_people
from holdfast.apps.report.local.sentence_value import claim_score, is_filler, stands_alone
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.local.tokenizing import is_unspaced
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.stance import VoteTally
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import Topic
from holdfast.apps.report.opinions import at_least
from holdfast.apps.report.self_description import describes_author
from holdfast.apps.report.voting import FEWEST as FEWEST_VOTES

_SENTENCES = 4
_CONSIDERED = 400
"""The most supported groups are considered; those behind them are said by one person each."""
_LONGEST = 170
_SUPPORT = 8.0
"""How much people count beside wording: who says it better does not stand before who is more."""
_AGREED, _HELD = 12.0, 0.35
"""How much voters count, and the share of them that is worth no more than one person's word."""
_HALF = 0.5
_SAID, _NEVER = 0.8, -99.0
"""How alike a claim is to one that is chosen for it to say the same, and what it adds then."""
_RECORDED, _SURELY_CLAIMING = 400, 1.35
"""Where quotes begin, on average, in comments that were recorded or are as long as speech; of
those, only sentences that clearly claim something speak for others."""
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
    leading = leading_groups(groups, _SENTENCES, names)
    if not is_recorded(groups):
        return [_of_subtopic(group, names, language) for group in leading]
    clear = [group for group in leading if is_clear(group, topic.name, names[group.subtopic])]
    told: list[Sentence] = []
    if topic.mentions:
        phrases, cites = mentioned(topic, groups, language)
        told.append(Sentence(message(language, "mentions", phrases=phrases), cites))
    return [*told, *(_of_subtopic(group, names, language) for group in clear)]


def mentioned(
    topic: Topic, groups: Sequence[ClaimGroup], language: str
) -> tuple[str, tuple[str, ...]]:
    """What several people mention, and for each phrase a claim that has it, if there is one."""
    phrases = [m.phrase + with_people(language, m.people) for m in topic.mentions]
    cites = dict.fromkeys(
        _clearest([group for group in groups if _has(group.statement, mention.phrase)])
        for mention in topic.mentions
    )
    return listed(language, phrases), tuple(filter(None, cites)) or (groups[0].id,)


def _clearest(groups: Sequence[ClaimGroup]) -> str:
    """The id of the one that is understood best: it claims something, stands alone, is short. Empty
    if there is none."""
    scores = [
        stands_alone(group.statement) + claim_score(group.statement) - len(group.statement) / 150
        for group in groups
    ]
    return groups[int(np.argmax(np.round(scores, 4)))].id if groups else ""


def _has(statement: str, phrase: str) -> bool:
    """Whether a phrase is in a statement, its last word in the singular or the plural."""
    if is_unspaced(phrase):
        return phrase in statement
    whole = rf"\b{re.escape(phrase.removesuffix('s'))}(?:s|es)?\b"
    return bool(re.search(whole, statement, re.IGNORECASE))


def _of_subtopic(group: ClaimGroup, names: Mapping[str, str], language: str) -> Sentence:
    """A claim, led by the name of its subtopic if it is about that; one that voters do not accept
    is said to be such."""
    if group.votes and is_rejected(group):
        return Sentence(_disputed(group.statement, group.votes, language), (group.id,))
    name = names.get(group.subtopic, "") if len(names) > 1 else ""
    is_led = name and bool(are_about([group.statement], [name])[0])
    lead = name + message(language, "colon") if is_led else ""
    return Sentence(lead + stated(group, language), (group.id,))


def _disputed(statement: str, votes: VoteTally, language: str) -> str:
    return message(
        language,
        "rejected" if at_least(votes.disagrees, votes.cast) > _HALF else "splits",
        claim=shortened(statement, _LONGEST).rstrip(" .。"),
        agrees=votes.agrees,
        disagrees=votes.disagrees,
        cast=votes.cast,
    )


def stated(group: ClaimGroup, language: str) -> str:
    """A claim, ending like a sentence, with what stands behind it: votes, or several people."""
    statement = shortened(group.statement, _LONGEST)
    if len(group.speakers) < 2 and not is_voted(group):
        return statement if statement.endswith(_END) else statement + _stop(statement)
    bare = statement.rstrip(" .。")
    return bare + _support(group, language) + _stop(bare)


def _support(group: ClaimGroup, language: str) -> str:
    if group.votes and is_voted(group):
        return message(language, "voted", agrees=group.votes.agrees, cast=group.votes.cast)
    return with_people(language, len(group.speakers))


def agreement(group: ClaimGroup) -> float:
    """The share of the voters that surely agrees with a claim; 0 where too few voted."""
    tally = group.votes
    return at_least(tally.agrees, tally.cast) if tally and is_voted(group) else 0.0


def is_accepted(group: ClaimGroup) -> bool:
    """Whether surely more voters agree with a claim than disagree, or nobody voted on it."""
    tally = group.votes
    if tally is None or not is_voted(group):
        return True
    return at_least(tally.agrees, tally.agrees + tally.disagrees) > _HALF


def is_rejected(group: ClaimGroup) -> bool:
    """Whether as many voters disagree with a claim as agree."""
    tally = group.votes
    return tally is not None and is_voted(group) and tally.disagrees >= tally.agrees


def is_voted(group: ClaimGroup) -> bool:
    """Whether enough people voted on a claim for its votes to say more than its speakers."""
    return group.votes is not None and group.votes.cast >= FEWEST_VOTES


def is_recorded(groups: Sequence[ClaimGroup]) -> bool:
    """Whether claims come from recorded speech: most of its sentences need those around them."""
    starts = [member.start for group in groups for member in group.members]
    return bool(starts) and mean(starts) > _RECORDED


def is_clear(group: ClaimGroup, *names: str) -> bool:
    """Whether what somebody said clearly claims something about one of the names."""
    claims = len(group.speakers) > 1 or claim_score(group.statement) >= _SURELY_CLAIMING
    return claims and any(name and uses(group.statement, name) for name in names)


def _stop(text: str) -> str:
    return "。" if is_unspaced(text) else "."


def leading_groups(
    groups: Sequence[ClaimGroup], count: int, names: Mapping[str, str]
) -> list[ClaimGroup]:
    """The groups that tell most about all of them: well supported, typical, worded as a claim,
    about what their subtopic is named for (`names`), unlike one another. What more voters surely
    agree with comes first, and what nobody voted on behind it."""
    considered = _considered(groups, names)
    if not considered:
        return []
    statements = [group.statement for group in considered]
    vectors = semantic_vectors(statements)
    middle = unit_length(vectors.sum(axis=0, keepdims=True))[0]
    about = are_about(statements, [names.get(group.subtopic, "") for group in considered])
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
    return sorted((considered[at] for at in chosen), key=lambda group: -agreement(group))


def _considered(groups: Sequence[ClaimGroup], names: Mapping[str, str]) -> list[ClaimGroup]:
    """The groups that can speak for others, if there are such: what says more than who somebody
    is, what voters do not reject, what is supported, what is understood alone and is about the
    name or claims something; in the script of most."""
    others = [group for group in groups if not describes_author(group.statement)] or groups
    accepted = [group for group in others if is_accepted(group)]
    considered = accepted or [group for group in others if not is_rejected(group)] or others
    considered = considered[:_CONSIDERED]
    unspaced = [is_unspaced(group.statement) for group in considered]
    mostly = sum(unspaced) * 2 > len(unspaced)
    considered = [
        group for group, is_so in zip(considered, unspaced, strict=True) if is_so == mostly
    ]
    telling = [group for group in considered if not is_filler(group.statement)]
    about = are_about(
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


def are_about(statements: Sequence[str], names: Sequence[str]) -> list[bool]:
    """For each statement whether it is about what the name beside it says: it uses the name, or is
    near to it in meaning."""
    row_of = {name: row for row, name in enumerate(dict.fromkeys(names))}
    statement_vectors = semantic_vectors(statements)
    name_vectors = semantic_vectors(list(row_of))[[row_of[name] for name in names]]
    near = np.round((statement_vectors * name_vectors).sum(axis=1), 3) >= _ABOUT
    return [
        bool(name) and (uses(statement, name) or (bool(is_near) and not is_unspaced(name)))
        for statement, name, is_near in zip(statements, names, near, strict=True)
    ]


def uses(statement: str, name: str) -> bool:
    return name.casefold().removesuffix("s") in statement.casefold()


def _standing(group: ClaimGroup) -> float:
    """How much support counts: the voters who agree, where people voted; else the people who say
    it, less for a slogan, which many happen to write alike."""
    if is_voted(group):
        return _SUPPORT * log1p(1) + _AGREED * (agreement(group) - _HELD)
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
        return _NEVER
    if not chosen:
        return merit[at]
    likeness = float((vectors[list(chosen)] @ vectors[at]).max())
    if likeness >= _SAID:
        return _NEVER
    repeated = sum(groups[other].subtopic == groups[at].subtopic for other in chosen)
    return merit[at] - 1.2 * max(0.0, likeness) - 0.8 * repeated
