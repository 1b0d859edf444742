"""What an analyst proposes becomes part of the report only after it was checked here.

A claim needs words that are really in its comment and a subtopic that the comment was placed in.
Every claim ends up in exactly one group, and claims that contradict each other never share one. A
sentence needs evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.apps.report.model.claim import (
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

LONGEST_STATEMENT = 500


def check_clustering(found: Clustering, comments: Sequence[Comment]) -> Clustering:
    """Every comment in at least one existing subtopic, in `OTHER` if need be; empty subtopics and
    topics are gone."""
    lengths = {comment.id: len(comment.text) for comment in comments}
    known = {subtopic.id for topic in found.topics for subtopic in topic.subtopics} | {OTHER}
    placements = [
        Placement(one.comment, one.subtopic, max(0, one.start), min(one.end, lengths[one.comment]))
        for one in dict.fromkeys(found.placements)
        if one.comment in lengths and one.subtopic in known
    ]
    placed = {one.comment for one in placements}
    placements += [
        Placement(one.id, OTHER, 0, len(one.text)) for one in comments if one.id not in placed
    ]
    order = {comment.id: index for index, comment in enumerate(comments)}
    placements.sort(key=lambda one: (order[one.comment], one.start, one.end, one.subtopic))
    return Clustering(_used(found.topics, placements), tuple(placements), found.map, found.notes)


def _used(topics: Iterable[Topic], placements: Sequence[Placement]) -> tuple[Topic, ...]:
    used = {one.subtopic for one in placements}
    kept = [
        Topic(
            topic.id,
            topic.name,
            topic.description,
            tuple(one for one in topic.subtopics if one.id in used),
        )
        for topic in topics
    ]
    return tuple(topic for topic in kept if topic.subtopics)


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
    lost: list[DroppedDraft] = []
    for one in checked:
        if isinstance(one, DroppedDraft):
            lost.append(one)
        elif one.id in claims:
            lost.append(DroppedDraft(one.comment, one.statement, one.quote, DropReason.REPEATED))
        else:
            claims[one.id] = one
    return list(claims.values()), lost


def check_groups(
    subtopic: Subtopic, claims: Sequence[QuotedClaim], proposed: Sequence[ProposedGroup]
) -> list[ClaimGroup]:
    """Every claim in exactly one group, whatever was proposed; those left over stand for
    themselves."""
    left = {claim.id: claim for claim in claims}
    groups: list[ClaimGroup] = []
    for grouping in proposed:
        members = [left.pop(each) for each in dict.fromkeys(grouping.members) if each in left]
        if members:
            groups += _consistent(subtopic, grouping.statement, members)
    groups += [_group(subtopic, claim.statement, [claim]) for claim in left.values()]
    return groups


def _consistent(subtopic: Subtopic, statement: str, members: list[QuotedClaim]) -> list[ClaimGroup]:
    """The group, without those who say the opposite of its most typical claim: they form groups of
    their own."""
    leader = members[0]
    same = [
        one for one in members if one is leader or not contradict(leader.statement, one.statement)
    ]
    rest = [one for one in members if one not in same]
    told = " ".join(statement.split())[:LONGEST_STATEMENT]
    if not told or contradict(leader.statement, told):
        told = leader.statement
    return [_group(subtopic, told, same), *(_consistent(subtopic, "", rest) if rest else [])]


def _group(subtopic: Subtopic, statement: str, members: list[QuotedClaim]) -> ClaimGroup:
    return ClaimGroup(group_id(tuple(members)), subtopic.id, statement, tuple(members))


def check_sentences(
    proposed: Iterable[Sentence], known: Iterable[str]
) -> tuple[list[Sentence], int]:
    """Sentences with their valid citations, and how many had none and are left out."""
    ids = set(known)
    kept: list[Sentence] = []
    unfounded = 0
    for sentence in proposed:
        cites = tuple(dict.fromkeys(each for each in sentence.cites if each in ids))
        text = " ".join(sentence.text.split())
        if cites and text:
            kept.append(Sentence(text, cites))
        else:
            unfounded += 1
    return kept, unfounded
