"""What people voted for, as it is laid before a model: claims by number, groups by letter, and
counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def tally_payload(tally: VoteTally) -> dict[str, int]:
    return {"agree": tally.agrees, "disagree": tally.disagrees, "pass": tally.passes}
