"""Stances on a statement, and votes counted by stance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stance(StrEnum):
    AGREE = "agree"
    DISAGREE = "disagree"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class VoteTally:
    """Votes on one comment, by everybody or by one group."""

    agrees: int
    disagrees: int
    passes: int

    @property
    def cast(self) -> int:
        return self.agrees + self.disagrees + self.passes

    def count(self, stance: Stance) -> int:
        match stance:
            case Stance.AGREE:
                return self.agrees
            case Stance.DISAGREE:
                return self.disagrees
            case Stance.UNCLEAR:
                return self.passes

    def share(self, stance: Stance) -> float:
        """The share of those who voted that took a stance."""
        return self.count(stance) / self.cast if self.cast else 0.0
