"""What the person who wants the report has asked for: every analyst is given it with every
question."""

from __future__ import annotations

from dataclasses import dataclass, field

PROMPTS = (
    "system",
    "clustering",
    "assignment",
    "extraction",
    "dedup",
    "summaries",
    "overview",
    "crux",
)
"""The prompts that can be replaced, by the names of the earlier report worker and two more."""


@dataclass(frozen=True, slots=True)
class GivenTopic:
    """A topic that the organisers want to see, found in the comments or not."""

    name: str
    description: str = ""
    subtopics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """Title, question, language and what is wanted. `language` is a BCP 47 code; `topics` 0 means
    as many as fit."""

    title: str = ""
    question: str = ""
    description: str = ""
    language: str = "en"
    topics: int = 0
    given: tuple[GivenTopic, ...] = ()
    prompts: dict[str, str] = field(default_factory=dict)
    """Replacements for our own prompts, by name (`PROMPTS`)."""
    reviewer: str = ""
    """The second model that reviews names and findings; empty: none."""
    budget: float | None = None
    """US dollars that the run may spend. Before more is spent the run pauses."""
    fresh: bool = False
    """Whether to ask again what the cache of answers could tell."""
