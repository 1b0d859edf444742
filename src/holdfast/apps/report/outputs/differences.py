"""What can differ between two reports, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.apps.report.model.document import ReportClaim, ReportTopic

T = TypeVar("T", ReportTopic, ReportClaim)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, before and after."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The same topic or claim in both reports."""

    before: T
    after: T

    @property
    def people(self) -> int:
        """How many more people are behind it; fewer is negative."""
        return self.after.people - self.before.people

    @property
    def renamed(self) -> bool:
        return name_of(self.before) != name_of(self.after)


@dataclass(frozen=True, slots=True)
class Changes(Generic[T]):
    """What became of all topics, or of all claims. `changed` ones are called or supported
    otherwise."""

    added: tuple[T, ...]
    removed: tuple[T, ...]
    changed: tuple[Change[T], ...]
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    figures: tuple[Figure, ...]
    """Only those that differ."""
    comments_added: tuple[str, ...]
    comments_removed: tuple[str, ...]
    """Comment ids, as the report that has them calls them."""
    topics: Changes[ReportTopic]
    claims: Changes[ReportClaim]

    @property
    def empty(self) -> bool:
        """Whether the two reports say the same."""
        changes = (self.topics.added, self.topics.removed, self.topics.changed)
        claims = (self.claims.added, self.claims.removed, self.claims.changed)
        return not any(
            (self.figures, self.comments_added, self.comments_removed, *changes, *claims)
        )


def name_of(topic_or_claim: ReportTopic | ReportClaim) -> str:
    """What readers call it."""
    return (
        topic_or_claim.statement if isinstance(topic_or_claim, ReportClaim) else topic_or_claim.name
    )
