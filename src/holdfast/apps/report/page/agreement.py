"""Agreement and disagreement: what people voted on, from consensus to an even split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.apps.report.model.crux import Basis
from holdfast.apps.report.model.document import ReportCrux
from holdfast.apps.report.opinions import at_least
from holdfast.apps.report.page.charts.swarm import Swarm, swarm
from holdfast.apps.report.page.content import PageContent, PlacedClaim

LOW = 30
"""Fewer votes than this are drawn hollow: chance alone could have made the figure."""
IN_STRIP = 250
IN_LIST = 5
WIDE, NARROW = 720, 330


@dataclass(frozen=True, slots=True)
class Opinion:
    """A statement that people took sides on."""

    anchor: str
    label: str
    statement: str
    agree: int
    disagree: int
    unsure: int
    controversy: float
    colour: int

    @property
    def people(self) -> int:
        return self.agree + self.disagree + self.unsure

    @property
    def low(self) -> bool:
        return self.people < LOW

    def share(self, count: int) -> float:
        return count / self.people if self.people else 0.0


class Agreement:
    def __init__(self, content: PageContent) -> None:
        claims = [_of_claim(placed) for placed in content.claims.values() if placed.claim.votes]
        cruxes = [
            _of_crux(crux, content) for crux in content.report.cruxes if crux.basis != Basis.TENSION
        ]
        by_statement = {
            opinion.statement.strip(" .").casefold(): opinion
            for opinion in (*claims, *cruxes)
            if opinion.people
        }
        self.opinions = sorted(
            by_statement.values(), key=lambda opinion: (-opinion.people, opinion.anchor)
        )
        self.drawn = self.opinions[:IN_STRIP]

    @property
    def left(self) -> int:
        """Statements that the strip has no room for."""
        return len(self.opinions) - len(self.drawn)

    def strip(self, width: int) -> Swarm:
        return swarm(
            [(opinion.controversy, opinion.agree >= opinion.disagree) for opinion in self.drawn],
            width,
        )

    @property
    def most_agreed(self) -> list[Opinion]:
        return self._first(lambda opinion: at_least(opinion.agree, opinion.people))

    @property
    def most_divided(self) -> list[Opinion]:
        return self._first(
            lambda opinion: 2 * at_least(min(opinion.agree, opinion.disagree), opinion.people)
        )

    @property
    def least_certain(self) -> list[Opinion]:
        return self._first(lambda opinion: at_least(opinion.unsure, opinion.people))

    def _first(self, score: Callable[[Opinion], float]) -> list[Opinion]:
        ranked = sorted(self.opinions, key=lambda opinion: (-score(opinion), opinion.anchor))
        return [opinion for opinion in ranked if score(opinion) > 0][:IN_LIST]


def _of_claim(placed: PlacedClaim) -> Opinion:
    claim, votes = placed.claim, placed.claim.votes
    assert votes is not None
    return Opinion(
        placed.anchor,
        str(claim.number),
        claim.statement,
        votes.agrees,
        votes.disagrees,
        votes.passes,
        min(max(votes.controversy, 0.0), 1.0),
        placed.colour,
    )


def _of_crux(crux: ReportCrux, content: PageContent) -> Opinion:
    return Opinion(
        content.anchor("x", crux.id),
        "",
        crux.statement,
        crux.agree,
        crux.disagree,
        crux.unclear,
        min(max(crux.controversy, 0.0), 1.0),
        content.colour(crux.topic),
    )
