"""Cruxes: the statements that divide people most, and who stands where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.apps.report.model.stance import VoteTally


class Basis(StrEnum):
    """What a crux rests on, from strong to weak."""

    VOTES = "votes"
    """People voted on the statement itself."""
    CLAIMS = "claims"
    """An analyst read what people said and sorted them."""
    TENSION = "tension"
    """Two claims that seem to contradict each other: a hint, not a finding."""


@dataclass(frozen=True, slots=True)
class CruxDraft:
    """A crux as an analyst proposes it: a statement, why it divides, and speakers by stance. Not
    checked yet."""

    statement: str
    explanation: str
    agree: tuple[str, ...]
    disagree: tuple[str, ...]
    cites: tuple[str, ...] = ()
    """The groups (claims of the report) that it rests on."""
    basis: Basis = Basis.CLAIMS


@dataclass(frozen=True, slots=True)
class Crux:
    """A statement that divides people. Everybody counted is in exactly one of the three.

    The lists of names may be shorter than the counts: votes are often counted without names.
    """

    id: str
    topic: str
    subtopic: str
    statement: str
    explanation: str
    basis: Basis
    agree: int
    disagree: int
    unclear: int
    agreeing: tuple[str, ...]
    disagreeing: tuple[str, ...]
    undecided: tuple[str, ...]
    cites: tuple[str, ...]
    groups: tuple[VoteTally, ...] = ()
    """How each opinion group voted, in the order of the groups."""
    gap: float = 0.0
    """The widest difference between two groups' shares of agreement."""

    @property
    def people(self) -> int:
        return self.agree + self.disagree + self.unclear

    @property
    def controversy(self) -> float:
        return controversy(self.agree, self.disagree, self.people)

    @property
    def weight(self) -> float:
        """What cruxes are ordered by: the gap between groups and the split, the more certain the
        more people it rests on."""
        return (self.gap + self.controversy / 2) * self.people / (self.people + PRIOR)


@dataclass(frozen=True, slots=True)
class Cruxes:
    """All cruxes, most divided first, and the matrix speaker × crux."""

    cruxes: tuple[Crux, ...]
    speakers: tuple[str, ...] = ()
    matrix: tuple[tuple[str, ...], ...] = ()
    """One row for each speaker, one cell for each crux: agree, disagree, unclear, or empty (said
    nothing)."""
    notes: tuple[str, ...] = ()


PRIOR = 10
"""How many people it takes for a division to weigh half."""

LEVELS = ((0.8, "max"), (0.6, "high"), (0.4, "mid"), (0.2, "light"), (0.0, "low"))


def controversy(agree: int, disagree: int, people: int) -> float:
    """2 · min(agree, disagree) as shares of everybody counted: 1 is an even split, 0 is nobody on
    one side."""
    return 2 * min(agree, disagree) / people if people else 0.0


def level(score: float) -> str:
    return next(name for least, name in LEVELS if score >= least)
