"""Who took part: groups by the file's other columns, never so small that somebody could be
recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.page.content import PageContent

FEWEST = 5
"""Groups of fewer people are not shown, nor offered as a filter."""
LOW = 30
"""Groups of fewer people are marked: their shares say little."""
TRAITS_SHOWN = 8
GROUPS_SHOWN = 12
GROUPS_COMPARED = 4
_TOO_DIVERSE = 0.5
"""A column in which more than this share of the values differ tells persons, not groups."""


@dataclass(frozen=True, slots=True)
class TraitGroup:
    value: str
    people: int
    width: float
    """In percent of the largest group."""

    @property
    def low(self) -> bool:
        return self.people < LOW


@dataclass(frozen=True, slots=True)
class Interest:
    """How much of each group speaks about a topic."""

    topic: str
    colour: int
    shares: list[float]


@dataclass(frozen=True, slots=True)
class Trait:
    """A column of the file, with the groups it makes."""

    name: str
    groups: list[TraitGroup]
    hidden: int
    """Groups that are too small to be shown."""
    interests: list[Interest]

    @property
    def compared(self) -> list[TraitGroup]:
        return self.groups[:GROUPS_COMPARED]

    def code(self, comment: Comment) -> str:
        """The number of the group a comment belongs to; empty if it is none that we show."""
        value = comment.facets.get(self.name, "")
        return next((str(at) for at, group in enumerate(self.groups) if group.value == value), "")


def groups(content: PageContent) -> list[Trait]:
    """The columns worth showing."""
    named = (facet.name for facet in content.report.facets)
    made = (_trait(name, content) for name in named)
    return [trait for trait in made if trait][:TRAITS_SHOWN]


def codes(traits: Iterable[Trait], comment: Comment) -> str:
    return ".".join(trait.code(comment) for trait in traits)


def _trait(name: str, content: PageContent) -> Trait | None:
    values = [
        comment.facets[name] for comment in content.comments.values() if comment.facets.get(name)
    ]
    if not values or len(set(values)) > max(FEWEST, _TOO_DIVERSE * len(values)):
        return None
    belongs = _belonging(name, content)
    sizes = Counter(belongs.values())
    large = [(value, size) for value, size in sizes.most_common() if size >= FEWEST]
    if len(large) < 2:
        return None
    shown = [
        TraitGroup(value, size, 100 * size / large[0][1]) for value, size in large[:GROUPS_SHOWN]
    ]
    return Trait(
        name, shown, len(sizes) - len(shown), _interests(shown[:GROUPS_COMPARED], belongs, content)
    )


def _belonging(name: str, content: PageContent) -> dict[str, str]:
    """Everybody's group: what the first of their comments says."""
    value_by_speaker: dict[str, str] = {}
    for comment in content.comments.values():
        if value := comment.facets.get(name):
            value_by_speaker.setdefault(comment.speaker, value)
    return value_by_speaker


def _interests(
    compared: list[TraitGroup], belongs: dict[str, str], content: PageContent
) -> list[Interest]:
    interests = []
    for topic in content.topics:
        quotes = (
            quote for part in topic.subtopics for claim in part.claims for quote in claim.quotes
        )
        present = Counter(belongs.get(speaker) for speaker in {quote.speaker for quote in quotes})
        shares = [present[group.value] / group.people for group in compared]
        interests.append(Interest(topic.name, content.colour(topic.id), shares))
    return interests
