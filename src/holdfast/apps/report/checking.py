"""What an analyst proposes becomes part of the report only after it was checked here.

A claim needs words that are really in its comment and a subtopic that the comment was placed in.
Every claim ends up in exactly one group, and claims that contradict each other never share one. A
sentence needs evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.apps.report.model.claim import (
    LONGEST_STATEMENT,
    ClaimDraft,
    ClaimGroup,
    DroppedDraft,
    DropReason,
    ProposedGroup,
    QuotedClaim,
    claim_id,
    group_id,
)
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.contradiction import contradict
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.quotes import locate


def check_clustering(proposed: Clustering, comments: Sequence[Comment]) -> Clustering:
    """Every comment in at least one existing subtopic, in `OTHER` if need be; empty subtopics and
    topics are gone."""
    lengths = {comment.id: len(comment.text) for comment in comments}
    known = {subtopic.id for topic in proposed.topics for subtopic in topic.subtopics} | {OTHER}
    placements = [
        Placement(
            part.comment, part.subtopic, max(0, part.start), min(part.end, lengths[part.comment])
        )
        for part in dict.fromkeys(proposed.placements)
        if part.comment in lengths and part.subtopic in known
    ]
    placed = {part.comment for part in placements}
    placements += [
        Placement(comment.id, OTHER, 0, len(comment.text))
        for comment in comments
        if comment.id not in placed
    ]
    order = {comment.id: index for index, comment in enumerate(comments)}
    placements.sort(key=lambda part: (order[part.comment], part.start, part.end, part.subtopic))
    return Clustering(
        _used(proposed.topics, placements), tuple(placements), proposed.map, proposed.notes
    )


def _used(topics: Iterable[Topic], placements: Sequence[Placement]) -> tuple[Topic, ...]:
    used = {placement.subtopic for placement in placements}
    with_used_subtopics = [
        replace(topic, subtopics=tuple(part for part in topic.subtopics if part.id in used))
        for topic in topics
    ]
    return tuple(topic for topic in with_used_subtopics if topic.subtopics)


def check_draft(
    draft: ClaimDraft, comment: Comment, allowed: Sequence[str]
) -> QuotedClaim | DroppedDraft:
    """The claim behind a draft, or why it is none."""
    statement = " ".join(draft.statement.split())[:LONGEST_STATEMENT]
    if not any(character.isalnum() for character in statement):
        return DroppedDraft(comment.id, statement, draft.quote, DropReason.NO_STATEMENT)
    if draft.subtopic not in allowed:
        return DroppedDraft(comment.id, statement, draft.quote, DropReason.UNKNOWN_SUBTOPIC)
    span = locate(draft.quote, comment.text, draft.start)
    if span is None:
        return DroppedDraft(comment.id, statement, draft.quote, DropReason.QUOTE_NOT_FOUND)
    start, end = span
    return QuotedClaim(
        claim_id(comment.id, start, end, statement),
        comment.id,
        comment.speaker,
        draft.subtopic,
        statement,
        comment.text[start:end],
        start,
        end,
    )


def without_repeats(
    checked: Iterable[QuotedClaim | DroppedDraft],
) -> tuple[list[QuotedClaim], list[DroppedDraft]]:
    """Claims and losses apart; the second of two equal claims is a loss."""
    claims: dict[str, QuotedClaim] = {}
    dropped: list[DroppedDraft] = []
    for outcome in checked:
        if isinstance(outcome, DroppedDraft):
            dropped.append(outcome)
        elif outcome.id in claims:
            dropped.append(
                DroppedDraft(outcome.comment, outcome.statement, outcome.quote, DropReason.REPEATED)
            )
        else:
            claims[outcome.id] = outcome
    return list(claims.values()), dropped


def check_groups(
    subtopic: Subtopic, claims: Sequence[QuotedClaim], proposed: Sequence[ProposedGroup]
) -> list[ClaimGroup]:
    """Every claim in exactly one group, whatever was proposed; those left over stand for
    themselves."""
    ungrouped = {claim.id: claim for claim in claims}
    groups: list[ClaimGroup] = []
    for grouping in proposed:
        members = [ungrouped.pop(id) for id in dict.fromkeys(grouping.members) if id in ungrouped]
        if members:
            groups += _consistent(subtopic, grouping, members)
    groups += [_group(subtopic, claim.statement, [claim]) for claim in ungrouped.values()]
    return groups


def _consistent(
    subtopic: Subtopic, proposed: ProposedGroup, members: list[QuotedClaim]
) -> list[ClaimGroup]:
    """The group, without those who say the opposite of its most typical claim: they form groups of
    their own."""
    leader = members[0]
    same = [
        claim
        for claim in members
        if claim is leader or not contradict(leader.statement, claim.statement)
    ]
    rest = [claim for claim in members if claim not in same]
    shown = " ".join(proposed.statement.split())[:LONGEST_STATEMENT]
    if not shown or contradict(leader.statement, shown):
        shown = leader.statement
    others = _consistent(subtopic, replace(proposed, statement=""), rest) if rest else []
    return [_group(subtopic, shown, same, proposed.centrality), *others]


def _group(
    subtopic: Subtopic, statement: str, members: list[QuotedClaim], centrality: float = 0.0
) -> ClaimGroup:
    claims = tuple(members)
    return ClaimGroup(group_id(claims), subtopic.id, statement, claims, centrality=centrality)


def check_sentences(
    proposed: Iterable[Sentence], known: Iterable[str]
) -> tuple[list[Sentence], int]:
    """Sentences with their valid citations, and how many had none and are left out."""
    ids = set(known)
    checked: list[Sentence] = []
    unfounded = 0
    for sentence in proposed:
        cites = tuple(dict.fromkeys(id for id in sentence.cites if id in ids))
        text = " ".join(sentence.text.split())
        if cites and text:
            checked.append(Sentence(text, cites))
        else:
            unfounded += 1
    return checked, unfounded
