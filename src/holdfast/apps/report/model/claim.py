"""Claims: what a comment says, one thought at a time, each resting on words that are really in the
comment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from holdfast.apps.report.model.stance import VoteTally

LONGEST_STATEMENT = 500
"""What is longer is cut."""


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """A claim as an analyst proposes it: not checked yet."""

    statement: str
    quote: str
    subtopic: str
    start: int | None = None
    """Where the quote begins in the comment, if the analyst knows; it is checked anyway."""


@dataclass(frozen=True, slots=True)
class QuotedClaim:
    """A claim with its verified quote: `comment.text[start:end] == quote`, always."""

    id: str
    comment: str
    speaker: str
    subtopic: str
    statement: str
    quote: str
    start: int
    end: int


class DropReason(StrEnum):
    """Why a draft did not become a claim."""

    QUOTE_NOT_FOUND = "quote not found"
    NO_STATEMENT = "no statement"
    UNKNOWN_SUBTOPIC = "unknown subtopic"
    REPEATED = "repeated"
    """The same statement and quote were proposed twice for one comment."""


@dataclass(frozen=True, slots=True)
class DroppedDraft:
    """A draft that was dropped, kept for the record."""

    comment: str
    statement: str
    quote: str
    reason: DropReason


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that came out of one comment. `repaired` quotes were asked for again and then found."""

    comment: str
    claims: tuple[QuotedClaim, ...]
    lost: tuple[DroppedDraft, ...] = ()
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """How the extraction went, over all comments. The claims themselves are its items."""

    comments: int
    claims: int
    repaired: int
    lost: tuple[DroppedDraft, ...]
    silent: tuple[str, ...]
    """Comments that make no claim, by id."""
    failed: dict[str, str]
    """Comments that could not be analysed: id → why. They are in the report as such, never just
    missing."""


@dataclass(frozen=True, slots=True)
class ProposedGroup:
    """Claims that say the same, as an analyst proposes it: the statement for all of them, and their
    ids."""

    statement: str
    members: tuple[str, ...]
    centrality: float = 0.0
    """How typical it is of its subtopic, where the analyst can tell."""


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """A claim of the report: one statement, and everybody who made it. `members` begins with the
    most typical one."""

    id: str
    subtopic: str
    statement: str
    members: tuple[QuotedClaim, ...]
    votes: VoteTally | None = None
    """Votes on the comment that says just this, if people voted on it."""
    centrality: float = 0.0
    """How typical it is of its subtopic, where the analyst can tell."""

    @property
    def speakers(self) -> list[str]:
        """Everybody behind it, once, in order of appearance."""
        return list(dict.fromkeys(member.speaker for member in self.members))


def claim_id(comment: str, start: int, end: int, statement: str) -> str:
    """The same claim on the same words has the same id, in every run."""
    return "c-" + _short(comment, str(start), str(end), statement)


def quote_id(claim: str) -> str:
    """The id of the quote that a claim rests on."""
    return "q-" + claim.removeprefix("c-")


def group_id(members: tuple[QuotedClaim, ...]) -> str:
    """A group keeps its id, and its links, for as long as its most typical claim leads it."""
    return "g-" + members[0].id.removeprefix("c-")


def _short(*parts: str) -> str:
    return sha256("\x1f".join(parts).encode()).hexdigest()[:10]
