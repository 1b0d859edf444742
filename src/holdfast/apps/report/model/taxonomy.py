"""Topics and subtopics, and which part of which comment belongs where."""

from __future__ import annotations

from dataclasses import dataclass

OTHER = "other"
"""The id of the topic, and of its only subtopic, for comments that fit nowhere. It is always there
and always last."""


@dataclass(frozen=True, slots=True)
class Subtopic:
    id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase in comments on a topic, and how many people use it there."""

    phrase: str
    people: int


@dataclass(frozen=True, slots=True)
class Topic:
    id: str
    name: str
    description: str
    subtopics: tuple[Subtopic, ...]
    question: str = ""
    """Which question it answers, where people were asked several."""
    mentions: tuple[Mention, ...] = ()
    """Of recorded speech: what comments on it mention more often than others do."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A part of a comment, and the subtopic it speaks about. Usually the part is the whole
    comment."""

    comment: str
    subtopic: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Clustering:
    """The taxonomy and where every comment went. Each comment has at least one placement, in
    `OTHER` if need be."""

    topics: tuple[Topic, ...]
    """Without `OTHER`."""
    placements: tuple[Placement, ...]
    map: tuple[tuple[str, float, float], ...] = ()
    """(comment id, x, y) between 0 and 1: near each other means similar. Empty where the analyst
    has no such map."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how well it worked."""
