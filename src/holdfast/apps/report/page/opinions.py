"""Opinion groups on the page: a landscape of people, what marks each group, what all share and what
parts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from holdfast.apps.report.headline import LISTED, headline, unmarked_splits
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.model.opinion import OpinionGroup, Opinions
from holdfast.apps.report.model.stance import Stance, VoteTally
from holdfast.apps.report.page.charts.dots import path
from holdfast.apps.report.page.content import PageContent

SIDE = 1000
"""Of the landscape, in units of its drawing."""
IN_HEADER = 160
"""Characters of a statement in the header."""


@dataclass(frozen=True, slots=True)
class GroupShare:
    """How one group stands to a statement."""

    group: str
    colour: int
    tally: VoteTally
    share: float
    """That takes the stance the statement is listed for."""


@dataclass(frozen=True, slots=True)
class GroupedStatement:
    text: str
    anchor: str
    """Of its claim; empty if it makes none."""
    stance: Stance
    shares: list[GroupShare]
    everybody: VoteTally

    @property
    def short(self) -> str:
        return shortened(self.text, IN_HEADER)


@dataclass(frozen=True, slots=True)
class ShownGroup:
    id: str
    people: int
    colour: int
    marks: list[GroupedStatement]
    path: str
    x: float
    y: float
    """Where its letter stands, in percent."""


class OpinionLandscape:
    """What the templates ask about opinion groups. Empty without groups."""

    def __init__(self, content: PageContent) -> None:
        self._content = content
        self._opinions: Opinions = content.report.opinions
        self._voted = {voted.comment: voted for voted in self._opinions.comments}
        self._claims = {
            quote.comment: placed.anchor
            for placed in reversed(content.claims.values())
            for quote in placed.claim.quotes
        }
        self.groups = [
            self._group(number, group) for number, group in enumerate(self._opinions.groups)
        ]
        self.shared = [
            self._statement(position.comment, position.stance)
            for position in self._opinions.shared[:LISTED]
        ]
        self.splits = [
            self._statement(comment, Stance.AGREE) for comment in unmarked_splits(self._opinions)
        ]

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def grouped(self) -> int:
        return sum(group.people for group in self.groups)

    @property
    def ungrouped(self) -> str:
        """The people whose group is too small to be shown."""
        return _path([spot for spot in self._opinions.people if not spot[3]])

    def headline(self) -> Iterator[tuple[str, ShownGroup | None, GroupedStatement]]:
        """What the groups hold, in a few lines."""
        for line in headline(self._opinions, self._content.comments):
            group = None if line.group is None else self.groups[line.group]
            yield line.kind, group, self._statement(line.comment, line.stance)

    def _group(self, number: int, group: OpinionGroup) -> ShownGroup:
        spots = [spot for spot in self._opinions.people if spot[3] == group.id]
        return ShownGroup(
            group.id,
            group.people,
            number + 1,
            [self._statement(mark.comment, mark.stance) for mark in group.marks[:LISTED]],
            _path(spots),
            100 * median(x for _, x, _, _ in spots),
            100 * median(y for _, _, y, _ in spots),
        )

    def _statement(self, comment: str, stance: Stance) -> GroupedStatement:
        voted = self._voted[comment]
        shares = [
            GroupShare(group.id, number + 1, tally, tally.share(stance))
            for number, (group, tally) in enumerate(
                zip(self._opinions.groups, voted.groups, strict=True)
            )
        ]
        text = " ".join(self._content.comments[comment].text.split())
        return GroupedStatement(
            text, self._claims.get(comment, ""), stance, shares, voted.everybody
        )


def _path(spots: Sequence[tuple[str, float, float, str]]) -> str:
    return path((round(x * SIDE), round(y * SIDE)) for _, x, y, _ in spots)
