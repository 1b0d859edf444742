"""What opinion groups hold, in a few lines: a mark of each, what all share, what parts them.

The page and `report.md` begin with it, and key findings go on from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.opinion import Opinions
from holdfast.apps.report.model.stance import Stance

LISTED = 5
"""Statements in each list below the headline."""


@dataclass(frozen=True, slots=True)
class HeadlineStatement:
    """A comment in the headline. `kind` is "mark" with the number of a group, "shared" or
    "splits"."""

    kind: str
    group: int | None
    comment: str
    stance: Stance


def headline(opinions: Opinions, comments: Mapping[str, Comment]) -> Iterator[HeadlineStatement]:
    """The first statement of each kind that was not said before; nothing without groups."""
    if not opinions.groups:
        return
    marked = [
        ("mark", number, [(mark.comment, mark.stance) for mark in group.marks])
        for number, group in enumerate(opinions.groups)
    ]
    shared = [(position.comment, position.stance) for position in opinions.shared]
    splits = [(comment, Stance.AGREE) for comment in opinions.splits]
    rows: Sequence[tuple[str, int | None, Sequence[tuple[str, Stance]]]] = [
        *marked,
        ("shared", None, shared),
        ("splits", None, splits),
    ]
    said: set[str] = set()
    for kind, group, statements in rows:
        for comment, stance in statements:
            text = " ".join(comments[comment].text.split())
            if text not in said:
                said.add(text)
                yield HeadlineStatement(kind, group, comment, stance)
                break


def unmarked_splits(opinions: Opinions) -> list[str]:
    """What parts the groups and is not listed already as a mark of one of them."""
    marks = {mark.comment for group in opinions.groups for mark in group.marks[:LISTED]}
    return [comment for comment in opinions.splits if comment not in marks][:LISTED]
