"""Votes on comments, and the claims that carry them.

A vote is on a whole comment. It counts for a claim when the claim's quote is the comment; a comment
with three thoughts does not tell which of them people voted on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from holdfast.apps.report.model.claim import LONGEST_STATEMENT, ClaimGroup, QuotedClaim
from holdfast.apps.report.model.comment import Comment, Votes
from holdfast.apps.report.model.stance import Stance, VoteTally

WHOLE = 0.9
"""The share of a comment that a quote must have to be the comment."""
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
    def tally(self) -> VoteTally:
        return VoteTally(self.agrees, self.disagrees, self.passes)


def ballots(comments: Iterable[Comment], votes: Votes | None) -> dict[str, Ballot]:
    """The votes on each comment: from the matrix where there is one, else from the counts in the
    file."""
    counted = {
        comment.id: Ballot(comment.agrees or 0, comment.disagrees or 0, comment.passes or 0, {})
        for comment in comments
        if (comment.agrees or 0) + (comment.disagrees or 0) > 0
    }
    return {**counted, **ballots_in(votes)} if votes else counted


def ballots_in(votes: Votes) -> dict[str, Ballot]:
    """The votes on each comment of a matrix."""
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


def with_votes(
    group: ClaimGroup, ballots: Mapping[str, Ballot], comments: Mapping[str, Comment]
) -> ClaimGroup:
    """The claim with the votes on the most voted comment that says just this, if there is one."""
    tallies = [
        ballots[claim.comment].tally
        for claim in group.members
        if claim.comment in ballots and is_whole(claim, comments[claim.comment])
    ]
    return replace(group, votes=max(tallies, key=lambda tally: tally.cast)) if tallies else group


def is_voted_whole(comment: Comment) -> bool:
    """Whether a comment is one claim because people voted on all of it."""
    votes = (comment.agrees or 0) + (comment.disagrees or 0)
    return votes > 0 and len(comment.text) <= LONGEST_STATEMENT


def is_whole(claim: QuotedClaim, comment: Comment) -> bool:
    """Whether a claim's quote is the comment, but for a few characters around it."""
    return claim.end - claim.start >= WHOLE * len(comment.text.strip())
