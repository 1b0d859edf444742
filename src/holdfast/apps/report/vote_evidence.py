"""What the votes say, in words that can be cited: comments become claims of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.apps.report.cruxes import claims_by_comment, statement_of
from holdfast.apps.report.headline import headline
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.opinion import (
    MarkedGroup,
    Opinions,
    VotedStatement,
    VoteEvidence,
)
from holdfast.apps.report.model.stance import Stance


def vote_evidence(
    opinions: Opinions, groups: Sequence[ClaimGroup], comments: Mapping[str, Comment]
) -> VoteEvidence | None:
    """The evidence, or None where nobody voted. A comment that makes no claim is left out."""
    if not opinions.comments:
        return None
    claims = claims_by_comment(groups)
    statements = {
        voted.comment: VotedStatement(
            statement_of(comments[voted.comment], claims[voted.comment]),
            claims[voted.comment].id,
            voted.everybody,
            voted.groups,
        )
        for voted in opinions.comments
        if voted.comment in claims and voted.comment in comments
    }

    def stated(pairs: Iterable[tuple[str, Stance]]) -> tuple[tuple[VotedStatement, Stance], ...]:
        return tuple((statements[id], stance) for id, stance in pairs if id in statements)

    return VoteEvidence(
        opinions.voters,
        opinions.votes,
        tuple(
            MarkedGroup(
                group.id,
                group.people,
                stated((mark.comment, mark.stance) for mark in group.marks),
            )
            for group in opinions.groups
        ),
        stated((position.comment, position.stance) for position in opinions.shared),
        tuple(statements[id] for id in opinions.splits if id in statements),
        tuple(statements[id] for id in opinions.unsure if id in statements),
        tuple(
            statements[line.comment].claim
            for line in headline(opinions, comments)
            if line.comment in statements
        ),
    )
