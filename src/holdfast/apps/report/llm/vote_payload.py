"""What people voted for and what divides them, as it is laid before a model: claims by number,
groups by letter, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.apps.report.model.crux import Basis, Crux
from holdfast.apps.report.model.opinion import VotedStatement, VoteEvidence
from holdfast.apps.report.model.stance import VoteTally


def vote_payload(votes: VoteEvidence, numbers: Mapping[str, int]) -> dict[str, Any]:
    """`numbers` are those that claims are shown under; what is not shown is left out."""

    def stated(statement: VotedStatement, **more: Any) -> dict[str, Any]:
        by_group = {
            group.id: tally_payload(tally)
            for group, tally in zip(votes.groups, statement.groups, strict=True)
        }
        return {"claim": numbers[statement.claim], **more, "groups": by_group}

    return {
        "voters": votes.voters,
        "headline": [numbers[claim] for claim in votes.headline if claim in numbers],
        "groups": [
            {
                "group": group.id,
                "people": group.people,
                "marked_by": [
                    stated(statement, stance=str(stance))
                    for statement, stance in group.marks
                    if statement.claim in numbers
                ],
            }
            for group in votes.groups
        ],
        "shared": [
            stated(statement, stance=str(stance))
            for statement, stance in votes.shared
            if statement.claim in numbers
        ],
        "parts_people": [stated(split) for split in votes.splits if split.claim in numbers],
        "unsure": [stated(split) for split in votes.unsure if split.claim in numbers],
    }


def crux_payload(cruxes: Iterable[Crux], numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """What divides people: the numbers of the claims that it rests on, and where nobody voted on
    one of them, the statement that people were sorted by."""
    return [
        {
            "claims": cited,
            **({} if crux.basis == Basis.VOTES else {"statement": crux.statement}),
            "agree": crux.agree,
            "disagree": crux.disagree,
            "undecided": crux.unclear,
        }
        for crux in cruxes
        if (cited := [numbers[id] for id in crux.cites if id in numbers])
    ]


def tally_payload(tally: VoteTally) -> dict[str, int]:
    return {"agree": tally.agrees, "disagree": tally.disagrees, "pass": tally.passes}
