"""Cruxes: statements that divide people, with everybody in exactly one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.crux import Basis, Crux, CruxDraft, Cruxes, controversy
from holdfast.apps.report.model.opinion import Opinions, VotedComment
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.self_description import describes_author
from holdfast.apps.report.voting import FEWEST, Ballot, is_whole

MOST = 30
"""Cruxes from votes in one report."""
GAP, SPLIT = 0.2, 0.4
"""The least gap between groups, or the least controversy, of a comment that divides people."""


def from_votes(
    opinions: Opinions,
    ballots: Mapping[str, Ballot],
    groups: Sequence[ClaimGroup],
    topics: Mapping[str, str],
    comments: Mapping[str, Comment],
) -> list[Crux]:
    """The comments that divide voters, over the whole conversation: by the gap between groups and
    by the split. `topics` tells the topic of each subtopic. A claim that several comments make
    counts once. Where there are no groups, what people only say of themselves divides nobody."""
    claims = claims_by_comment(groups)
    cruxes = [
        _from_ballot(voted, ballots[voted.comment], claim, topics[claim.subtopic], comments)
        for voted in opinions.comments
        if voted.comment in claims
        and (claim := claims[voted.comment]).subtopic in topics
        and _divides(voted)
        and (voted.groups or not describes_author(comments[voted.comment].text))
    ]
    by_claim: dict[str, Crux] = {}
    for crux in sorted(cruxes, key=lambda crux: (-crux.weight, crux.id)):
        by_claim.setdefault(crux.cites[0], crux)
    return list(by_claim.values())[:MOST]


def claims_by_comment(groups: Iterable[ClaimGroup]) -> dict[str, ClaimGroup]:
    """The first claim of the report that rests on each comment."""
    claims: dict[str, ClaimGroup] = {}
    for group in groups:
        for member in group.members:
            claims.setdefault(member.comment, group)
    return claims


def statement_of(comment: Comment, claim: ClaimGroup) -> str:
    """What people voted on: the claim where it is the whole comment, else the comment itself."""
    is_complete = any(
        member.comment == comment.id and is_whole(member, comment) for member in claim.members
    )
    return claim.statement if is_complete else " ".join(comment.text.split())


def _divides(voted: VotedComment) -> bool:
    tally = voted.everybody
    split = controversy(tally.agrees, tally.disagrees, tally.cast)
    return tally.cast >= FEWEST and (voted.gap >= GAP or split >= SPLIT)


def _from_ballot(
    voted: VotedComment,
    ballot: Ballot,
    claim: ClaimGroup,
    topic: str,
    comments: Mapping[str, Comment],
) -> Crux:
    voters = {
        stance: tuple(voter for voter, vote in ballot.stances.items() if vote == stance)
        for stance in Stance
    }
    statement = statement_of(comments[voted.comment], claim)
    return Crux(
        crux_id(claim.subtopic, statement),
        topic,
        claim.subtopic,
        statement,
        "",
        Basis.VOTES,
        ballot.agrees,
        ballot.disagrees,
        ballot.passes,
        voters[Stance.AGREE],
        voters[Stance.DISAGREE],
        voters[Stance.UNCLEAR],
        (claim.id,),
        voted.groups,
        voted.gap,
    )


def has_votes(groups: Iterable[ClaimGroup], ballots: Mapping[str, Ballot]) -> bool:
    """Whether people voted on anything that these claims rest on."""
    return any(member.comment in ballots for group in groups for member in group.members)


def has_two_sides(groups: Sequence[ClaimGroup]) -> bool:
    """Whether there could be a disagreement: several claims by several people."""
    speakers = {speaker for group in groups for speaker in group.speakers}
    return len(groups) > 1 and len(speakers) > 1


def from_draft(
    topic: str, subtopic: str, draft: CruxDraft, groups: Sequence[ClaimGroup]
) -> Crux | None:
    """A proposed crux with its speakers put in order, or None if it does not divide anybody.

    Only speakers of the subtopic count. Who is on both sides is undecided, and so is everybody not
    mentioned."""
    speakers = dict.fromkeys(speaker for group in groups for speaker in group.speakers)
    agree = [
        speaker for speaker in speakers if speaker in draft.agree and speaker not in draft.disagree
    ]
    disagree = [
        speaker for speaker in speakers if speaker in draft.disagree and speaker not in draft.agree
    ]
    statement = " ".join(draft.statement.split())
    if not agree or not disagree or not statement:
        return None
    unclear = [speaker for speaker in speakers if speaker not in agree and speaker not in disagree]
    known = {group.id for group in groups}
    return Crux(
        crux_id(subtopic, statement),
        topic,
        subtopic,
        statement,
        " ".join(draft.explanation.split()),
        draft.basis,
        len(agree),
        len(disagree),
        len(unclear),
        tuple(agree),
        tuple(disagree),
        tuple(unclear),
        tuple(id for id in dict.fromkeys(draft.cites) if id in known),
    )


def gather(proposed: Iterable[Crux], notes: Sequence[str] = ()) -> Cruxes:
    """All cruxes, those that divide most people most first, and the matrix of who stands where."""
    cruxes = sorted(proposed, key=lambda crux: (-crux.weight, crux.id))
    stances = [_stances(crux) for crux in cruxes]
    speakers = list(dict.fromkeys(speaker for by_speaker in stances for speaker in by_speaker))
    matrix = tuple(
        tuple(by_speaker.get(speaker, "") for by_speaker in stances) for speaker in speakers
    )
    return Cruxes(tuple(cruxes), tuple(speakers), matrix, tuple(notes))


def _stances(crux: Crux) -> dict[str, str]:
    return {
        **dict.fromkeys(crux.agreeing, str(Stance.AGREE)),
        **dict.fromkeys(crux.disagreeing, str(Stance.DISAGREE)),
        **dict.fromkeys(crux.undecided, str(Stance.UNCLEAR)),
    }


def crux_id(subtopic: str, statement: str) -> str:
    return "x-" + sha256(f"{subtopic}\x1f{statement}".encode()).hexdigest()[:10]
