"""What votes say about claims: agreement, division, and who stands where.

A vote is on a whole comment. It counts for a claim when the claim's quote is most of the comment; a
comment with three thoughts does not tell which of them people voted on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim
from holdfast.apps.report.model.comment import Comment, Votes
from holdfast.apps.report.model.crux import PRIOR, Stance, controversy
from holdfast.apps.report.model.document import VoteCount

MOST = 0.5
"""The share of a comment that a quote must have, for votes on the comment to be votes on the
claim."""
FEWEST = 5
"""Fewer votes than this say nothing about division."""

STANCES = {1: Stance.AGREE, -1: Stance.DISAGREE, 0: Stance.UNCLEAR}


@dataclass(frozen=True, slots=True)
class Ballot:
    """All votes on one comment. Names only where they are known."""

    agrees: int
    disagrees: int
    passes: int
    stances: dict[str, Stance]

    @property
    def cast(self) -> int:
        return self.agrees + self.disagrees + self.passes

    @property
    def count(self) -> VoteCount:
        return VoteCount(
            self.agrees,
            self.disagrees,
            self.passes,
            round(controversy(self.agrees, self.disagrees, self.cast), 4),
        )


def ballots(comments: Iterable[Comment], votes: Votes | None) -> dict[str, Ballot]:
    """The votes on each comment: from the matrix where there is one, else from the counts in the
    file."""
    counted = {
        comment.id: Ballot(comment.agrees or 0, comment.disagrees or 0, comment.passes or 0, {})
        for comment in comments
        if (comment.agrees or 0) + (comment.disagrees or 0) > 0
    }
    return {**counted, **_from_matrix(votes)} if votes else counted


def _from_matrix(votes: Votes) -> dict[str, Ballot]:
    stances: dict[str, dict[str, Stance]] = {}
    for participant, comment, vote in votes.cells:
        of_comment = stances.setdefault(votes.comments[comment], {})
        of_comment[votes.participants[participant]] = STANCES[vote]
    return {comment: _ballot(by_participant) for comment, by_participant in stances.items()}


def _ballot(stances: dict[str, Stance]) -> Ballot:
    votes = list(stances.values())
    return Ballot(
        votes.count(Stance.AGREE),
        votes.count(Stance.DISAGREE),
        votes.count(Stance.UNCLEAR),
        stances,
    )


def ballot_of(
    group: ClaimGroup, votes: Mapping[str, Ballot], comments: Mapping[str, Comment]
) -> Ballot | None:
    """The votes on a claim of the report: those on the most voted comment that says just this."""
    ballots_on_claim = [
        votes[claim.comment]
        for claim in group.members
        if claim.comment in votes and _is_most_of(claim, comments)
    ]
    return max(ballots_on_claim, key=lambda ballot: ballot.cast, default=None)


def _is_most_of(claim: QuotedClaim, comments: Mapping[str, Comment]) -> bool:
    return claim.end - claim.start >= MOST * len(comments[claim.comment].text.strip())


def most_divided(
    groups: Sequence[ClaimGroup], votes: Mapping[str, Ballot], comments: Mapping[str, Comment]
) -> tuple[ClaimGroup, Ballot] | None:
    """The claim that divides voters most; many votes weigh more than few."""
    voted = [(group, ballot) for group in groups if (ballot := ballot_of(group, votes, comments))]
    divided = [
        (group, ballot)
        for group, ballot in voted
        if ballot.cast >= FEWEST and ballot.count.controversy > 0
    ]
    return max(divided, key=lambda pair: (_division(pair[1]), pair[0].id), default=None)


def _division(ballot: Ballot) -> float:
    return ballot.count.controversy * ballot.cast / (ballot.cast + PRIOR)
