"""What people voted for and what divides them, as it is laid before a model: claims by number,
groups by letter, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.crux import Basis, Crux
from holdfast.apps.report.model.opinion import VotedStatement, VoteEvidence
from holdfast.apps.report.model.stance import VoteTally


class EvidencePayload:
    """Votes and cruxes of the claims that are shown, by their numbers; what is not shown is left
    out."""

    def __init__(self, shown: Sequence[ClaimGroup]) -> None:
        self._numbers = {group.id: number for number, group in enumerate(shown, 1)}
        self._statements = {group.id: group.statement for group in shown}

    def votes(self, votes: VoteEvidence) -> dict[str, Any]:
        groups = [group.id for group in votes.groups]

        def stated(statement: VotedStatement, **more: Any) -> list[dict[str, Any]]:
            if statement.claim not in self._numbers:
                return []
            tallies = zip(groups, map(tally_payload, statement.groups), strict=True)
            return [
                {
                    "claim": self._numbers[statement.claim],
                    **self._voted_on(statement.claim, statement.text),
                    **more,
                    "votes": tally_payload(statement.everybody),
                    "groups": dict(tallies),
                }
            ]

        return {
            "voters": votes.voters,
            "headline": [self._numbers[id] for id in votes.headline if id in self._numbers],
            "groups": [
                {
                    "group": group.id,
                    "people": group.people,
                    "marked_by": [
                        one
                        for statement, stance in group.marks
                        for one in stated(statement, stance=str(stance))
                    ],
                }
                for group in votes.groups
            ],
            "shared": [
                one
                for statement, stance in votes.shared
                for one in stated(statement, stance=str(stance))
            ],
            "parts_people": [one for split in votes.splits for one in stated(split)],
            "unsure": [one for split in votes.unsure for one in stated(split)],
        }

    def cruxes(self, cruxes: Iterable[Crux]) -> list[dict[str, Any]]:
        return [
            {
                "claims": cited,
                **self._dividing(crux),
                "agree": crux.agree,
                "disagree": crux.disagree,
                "undecided": crux.unclear,
            }
            for crux in cruxes
            if (cited := [self._numbers[id] for id in crux.cites if id in self._numbers])
        ]

    def _dividing(self, crux: Crux) -> dict[str, str]:
        if crux.basis == Basis.VOTES:
            return self._voted_on(crux.cites[0], crux.statement)
        return {"statement": crux.statement}

    def _voted_on(self, claim: str, text: str) -> dict[str, str]:
        """The comment that people voted on, where the claim is only a part of it."""
        is_whole = self._statements.get(claim) == text
        return {} if is_whole or looks_like_injection(text) else {"voted_on": text}


def tally_payload(tally: VoteTally) -> dict[str, int]:
    return {"agree": tally.agrees, "disagree": tally.disagrees, "pass": tally.passes}
