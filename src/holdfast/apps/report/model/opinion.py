"""Opinions: how people voted on whole comments, and the groups that voted alike.

A vote is on a whole comment, so everything here speaks of comments; claims only say where in the
report a comment is."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.report.model.stance import Stance, VoteTally


@dataclass(frozen=True, slots=True)
class VotedComment:
    """A comment that people voted on: everybody's votes, and those of each group, in the order of
    the groups."""

    comment: str
    everybody: VoteTally
    groups: tuple[VoteTally, ...] = ()
    gap: float = 0.0
    """The widest difference between two groups' shares of agreement, drawn towards 0 where few
    voted."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A comment that tells a group from the others: how much more of it takes a stance."""

    comment: str
    stance: Stance
    share: float
    others: float


@dataclass(frozen=True, slots=True)
class Position:
    """A comment, and what most think of it."""

    comment: str
    stance: Stance


@dataclass(frozen=True, slots=True)
class OpinionGroup:
    """People who voted alike. `A` is the largest group."""

    id: str
    people: int
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinions:
    """What the votes say. Without a matrix of votes, or without a pattern in it, there are no
    groups."""

    voters: int = 0
    """People who voted; 0 where votes were counted without names."""
    votes: int = 0
    groups: tuple[OpinionGroup, ...] = ()
    comments: tuple[VotedComment, ...] = ()
    """Every comment with votes, the widest gap between groups first, then the most divided."""
    shared: tuple[Position, ...] = ()
    """What all groups agree with, or reject."""
    splits: tuple[str, ...] = ()
    """Comments that part the groups, or all voters where there are no groups."""
    unsure: tuple[str, ...] = ()
    """Comments that unusually many voters passed on."""
    people: tuple[tuple[str, float, float, str], ...] = ()
    """(participant, x, y, group) for everybody with enough votes: near each other means that they
    vote alike. The group is empty for those whose group is too small to be shown."""
    silhouette: float = 0.0
    """How clearly the groups lie apart, between -1 and 1."""


# --- as evidence for what is written --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VotedStatement:
    """A voted comment in words, with the claim of the report that it is."""

    text: str
    claim: str
    everybody: VoteTally
    groups: tuple[VoteTally, ...]


@dataclass(frozen=True, slots=True)
class MarkedGroup:
    id: str
    people: int
    marks: tuple[tuple[VotedStatement, Stance], ...]


@dataclass(frozen=True, slots=True)
class VoteEvidence:
    """What the votes say, as far as it can be cited: every statement is a claim of the report."""

    voters: int
    votes: int
    groups: tuple[MarkedGroup, ...]
    shared: tuple[tuple[VotedStatement, Stance], ...]
    splits: tuple[VotedStatement, ...]
    unsure: tuple[VotedStatement, ...]
    headline: tuple[str, ...] = ()
    """The claims that the report begins with, above its findings."""
