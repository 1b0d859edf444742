"""What votes say about a whole conversation: what is shared, what parts people, what leaves them
unsure, and what marks each group.

Shares are judged by the lower end of Wilson's interval, so that a comment with few votes never
stands before one with many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import sqrt
from typing import TypeVar

from holdfast.apps.report.model.comment import Votes
from holdfast.apps.report.model.crux import PRIOR, controversy
from holdfast.apps.report.model.opinion import (
    Mark,
    OpinionGroup,
    Opinions,
    Position,
    VotedComment,
)
from holdfast.apps.report.model.stance import Stance, VoteTally
from holdfast.apps.report.voting import FEWEST, STANCES, Ballot

T = TypeVar("T")

SHOWN = 8
"""Comments in each list: what the headline does not say is left for key findings."""
_SURE = 1.96
_SHARED, _SURELY_SHARED = 0.6, 0.4
"""The least share of every group, as counted and at the lower end, for a comment to be shared by
all."""
_MARKING = 0.15
"""How much more of a group than of the others must take a stance for that to mark the group."""
_SPLITTING = 0.2
_UNSURE = 0.25
_SIDES = (Stance.AGREE, Stance.DISAGREE)


def find_opinions(
    ballots: Mapping[str, Ballot], votes: Votes | None, personal: Collection[str] = ()
) -> Opinions:
    """What the votes on comments say. Groups only where it is known who voted how. Comments that
    are `personal`, by their ids, may mark a group, but nobody shares or disputes them."""
    if not ballots:
        return Opinions()
    people, silhouette = _grouped(votes)
    members = _members(people)
    tallies = _group_tallies(votes, members) if votes and members else {}
    voted = sorted(
        (
            _voted(comment, ballot, [tallies[id].get(comment, _NONE) for id in members])
            for comment, ballot in ballots.items()
        ),
        key=lambda voted: (-voted.gap, -division(voted.everybody), voted.comment),
    )
    debatable = [comment for comment in voted if comment.comment not in personal]
    return Opinions(
        voters=len({cell[0] for cell in votes.cells}) if votes else 0,
        votes=sum(ballot.cast for ballot in ballots.values()),
        groups=tuple(
            OpinionGroup(id, len(names), _marks(number, voted))
            for number, (id, names) in enumerate(members.items())
        ),
        comments=tuple(voted),
        shared=_shared(debatable),
        splits=_splits(debatable),
        unsure=_unsure(debatable),
        people=people,
        silhouette=silhouette,
    )


_NONE = VoteTally(0, 0, 0)


def _grouped(votes: Votes | None) -> tuple[tuple[tuple[str, float, float, str], ...], float]:
    if votes is None or not votes.cells:
        return (), 0.0
    from holdfast.apps.report.opinion_groups import find_groups

    grouping = find_groups(votes)
    return (grouping.people, grouping.silhouette) if grouping else ((), 0.0)


def _members(people: Iterable[tuple[str, float, float, str]]) -> dict[str, set[str]]:
    members: dict[str, set[str]] = {}
    for name, _, _, group in people:
        if group:
            members.setdefault(group, set()).add(name)
    return dict(sorted(members.items()))


def _group_tallies(
    votes: Votes, members: Mapping[str, set[str]]
) -> dict[str, dict[str, VoteTally]]:
    """The votes of each group on each comment."""
    group_of = {name: id for id, names in members.items() for name in names}
    counts: dict[tuple[str, str], dict[Stance, int]] = {}
    for participant, comment, vote in votes.cells:
        if group := group_of.get(votes.participants[participant]):
            tally = counts.setdefault((group, votes.comments[comment]), dict.fromkeys(Stance, 0))
            tally[STANCES[vote]] += 1
    tallies: dict[str, dict[str, VoteTally]] = {id: {} for id in members}
    for (group, comment), count in counts.items():
        tallies[group][comment] = VoteTally(
            *(count[stance] for stance in (*_SIDES, Stance.UNCLEAR))
        )
    return tallies


def _voted(comment: str, ballot: Ballot, groups: Sequence[VoteTally]) -> VotedComment:
    return VotedComment(comment, ballot.tally, tuple(groups), round(widest_gap(groups), 4))


def widest_gap(groups: Sequence[VoteTally]) -> float:
    """The widest difference between shares of agreement; 0 where fewer than two groups voted."""
    shares = [(group.agrees + 1) / (group.cast + 2) for group in groups if group.cast >= FEWEST]
    return max(shares) - min(shares) if len(shares) > 1 else 0.0


def division(tally: VoteTally) -> float:
    """How evenly voters are split: 1 is half and half, less where few voted."""
    split = controversy(tally.agrees, tally.disagrees, tally.cast)
    return split * tally.cast / (tally.cast + PRIOR)


def at_least(count: int, people: int) -> float:
    """The lower end of Wilson's interval for a share."""
    if not people or not count:
        return 0.0
    share, weight = count / people, _SURE**2 / people
    spread = _SURE * sqrt((share * (1 - share) + weight / 4) / people)
    return max(0.0, (share + weight / 2 - spread) / (1 + weight))


# --- lists of comments ----------------------------------------------------------------------------


def _shared(voted: Iterable[VotedComment]) -> tuple[Position, ...]:
    """What every group agrees with, or rejects; without groups, what nearly all voters do."""

    def least(comment: VotedComment, stance: Stance) -> float:
        tallies = comment.groups or (comment.everybody,)
        if any(tally.cast < FEWEST or tally.share(stance) < _SHARED for tally in tallies):
            return 0.0
        return min(at_least(tally.count(stance), tally.cast) for tally in tallies)

    scored = [
        (least(comment, stance), Position(comment.comment, stance))
        for comment in voted
        for stance in _SIDES
    ]
    return tuple(
        position for _, position in _best(scored, _SHARED, lambda position: position.comment)
    )


def _splits(voted: Sequence[VotedComment]) -> tuple[str, ...]:
    if any(comment.groups for comment in voted):
        scored = [(_sure_gap(comment), comment.comment) for comment in voted]
    else:
        scored = [
            (2 * at_least(min(tally.agrees, tally.disagrees), tally.cast), comment.comment)
            for comment in voted
            if (tally := comment.everybody).cast >= FEWEST
        ]
    return tuple(comment for _, comment in _best(scored, _SPLITTING, str))


def _sure_gap(comment: VotedComment) -> float:
    """A gap that chance does not explain; 0 otherwise."""
    voting = [tally for tally in comment.groups if tally.cast >= FEWEST]
    if len(voting) < 2:
        return 0.0
    high = max(voting, key=lambda tally: tally.share(Stance.AGREE))
    low = min(voting, key=lambda tally: tally.share(Stance.AGREE))
    certain = _surely_more(high.agrees, high.cast, low.agrees, low.cast)
    return comment.gap if certain else 0.0


def _unsure(voted: Iterable[VotedComment]) -> tuple[str, ...]:
    scored = [
        (at_least(tally.passes, tally.cast), comment.comment)
        for comment in voted
        if (tally := comment.everybody).cast >= FEWEST
    ]
    return tuple(comment for _, comment in _best(scored, _UNSURE, str))


def _marks(group: int, voted: Sequence[VotedComment]) -> tuple[Mark, ...]:
    """What a group agrees with much more than the others; what it rejects only if that is too
    little."""
    by_stance = {stance: _marks_by(stance, group, voted) for stance in _SIDES}
    agreed = by_stance[Stance.AGREE]
    rejected = [
        mark
        for mark in by_stance[Stance.DISAGREE]
        if mark.comment not in {agreed_mark.comment for agreed_mark in agreed}
    ]
    return tuple((agreed + rejected[: max(0, 3 - len(agreed))])[:SHOWN])


def _marks_by(stance: Stance, group: int, voted: Sequence[VotedComment]) -> list[Mark]:
    scored: list[tuple[float, Mark]] = []
    for comment in voted:
        own = comment.groups[group]
        others = [tally for at, tally in enumerate(comment.groups) if at != group]
        count, cast = sum(t.count(stance) for t in others), sum(t.cast for t in others)
        if min(own.cast, cast) < FEWEST or own.share(stance) <= 0.5:
            continue
        if _surely_more(own.count(stance), own.cast, count, cast):
            more = (own.count(stance) + 1) / (own.cast + 2) - (count + 1) / (cast + 2)
            mark = Mark(
                comment.comment, stance, round(own.share(stance), 4), round(count / cast, 4)
            )
            scored.append((more, mark))
    return [mark for _, mark in _best(scored, _MARKING, lambda mark: mark.comment)]


def _surely_more(count: int, cast: int, other_count: int, other_cast: int) -> bool:
    """Whether one share is larger than another beyond chance (two-proportion z-test)."""
    pooled = (count + other_count) / (cast + other_cast)
    spread = sqrt(pooled * (1 - pooled) * (1 / cast + 1 / other_cast))
    return spread > 0 and count / cast - other_count / other_cast > _SURE * spread


def _best(
    scored: Iterable[tuple[float, T]], least: float, id: Callable[[T], str]
) -> list[tuple[float, T]]:
    enough = [(score, value) for score, value in scored if score >= least]
    return sorted(enough, key=lambda pair: (-round(pair[0], 6), id(pair[1])))[:SHOWN]
