"""A comment as somebody wrote it, and what became of every row of the file it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment that is analysed. `text` is what was given, personal data masked length for
    length if so wished.

    Offsets into `text` are therefore always offsets into the comment as given.
    """

    id: str
    row: int
    """The row of the file, counted from 1 without the header."""
    text: str
    speaker: str
    """Who said it. Nobody is merged with anybody: a row without a speaker is a person of its
    own."""
    anonymous: bool = False
    """Whether `speaker` is a name that we made up."""
    agrees: int | None = None
    disagrees: int | None = None
    passes: int | None = None
    video: str = ""
    timestamp: str = ""
    facets: dict[str, str] = field(default_factory=dict)
    """The other columns of the row: what readers filter by."""
    question: str = ""
    """What it answers, where the file has a column for each question."""


class Fate(StrEnum):
    """What became of a row."""

    KEPT = "kept"
    EMPTY = "empty"
    JUNK = "junk"
    """Nothing that could be a statement: no words."""
    DUPLICATE = "duplicate"
    """The same person said exactly the same before."""
    TOO_LONG = "too long"
    MODERATED = "moderated out"
    BROKEN = "broken"
    """The row could not be read."""
    OVER_LIMIT = "over the limit"
    """The file has more comments than one report analyses; which ones is decided by their content,
    not their place."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the input and what became of it."""

    row: int
    id: str
    fate: Fate
    reason: str = ""
    """In words, for people; empty when kept."""
    text: str = ""
    """The beginning of a comment that was not kept, so that people can judge; masked like every
    other text."""


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: the file as it was found."""

    filename: str
    sha256: str
    bytes: int
    format: str
    encoding: str
    separator: str
    columns: dict[str, str]
    """What each used column of the file is for: role → the file's own column name."""
    facets: tuple[str, ...]
    """The other columns."""


@dataclass(frozen=True, slots=True)
class Votes:
    """Who agreed (1), disagreed (-1) or passed (0) on which comment."""

    participants: tuple[str, ...]
    comments: tuple[str, ...]
    """Comment ids, one for each column."""
    cells: tuple[tuple[int, int, int], ...]
    """(index of participant, index of comment, vote), only where somebody voted."""


@dataclass(frozen=True, slots=True)
class CommentSet:
    """The result of reading: where the comments are, in parts, and how every row is accounted
    for."""

    source: Source
    rows: int
    fates: dict[str, int]
    """How many rows had each fate; they add up to `rows`."""
    people: int
    kept_parts: tuple[str, ...]
    """Artifacts: JSON lists of `Comment`, in the order of the file."""
    row_parts: tuple[str, ...]
    """Artifacts: JSON lists of `Row`, all of them, in the order of the file."""
    votes: str = ""
    """Artifact: JSON of `Votes`; empty if there are none."""
    language: str = "en"
    """The language most comments seem to be in (BCP 47), `und` if that can't be told."""
    warnings: tuple[str, ...] = ()
    """What a careful person would want to know about the file."""
