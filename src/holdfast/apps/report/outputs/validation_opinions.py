"""Whether opinion groups are what the votes beside them make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.model.opinion import Opinions, VotedComment

ROUNDING = 0.0001


def opinion_problems(report: Report) -> Iterator[str]:
    opinions = report.opinions
    yield from _count_problems(report)
    known = {comment.id for comment in report.comments}
    for voted in opinions.comments:
        if voted.comment not in known:
            yield f"There are votes on comment {voted.comment!r}, which is not in the report."
        yield from _tally_problems(voted, opinions)
    yield from _mention_problems(opinions)


def _count_problems(report: Report) -> Iterator[str]:
    opinions = report.opinions
    votes = sum(voted.everybody.cast for voted in opinions.comments)
    if not report.counts.votes == opinions.votes == votes:
        yield f"The report says {report.counts.votes} votes, but there are {votes}."
    if report.counts.voters != opinions.voters:
        yield f"The report says {report.counts.voters} voters, the opinions {opinions.voters}."
    members = Counter(group for *_, group in opinions.people if group)
    for group in opinions.groups:
        if group.people != members[group.id]:
            yield (
                f"Group {group.id} says {group.people} people, but {members[group.id]} are in it."
            )
    for id in members.keys() - {group.id for group in opinions.groups}:
        yield f"People are in group {id!r}, which is not there."
    for name, times in Counter(name for name, *_ in opinions.people).items():
        if times > 1:
            yield f"Participant {name!r} is in the opinion groups {times} times."


def _tally_problems(voted: VotedComment, opinions: Opinions) -> Iterator[str]:
    if len(voted.groups) != len(opinions.groups):
        yield (
            f"Comment {voted.comment!r} has the votes of {len(voted.groups)} groups, but there are "
            f"{len(opinions.groups)}."
        )
        return
    for group, tally in zip(opinions.groups, voted.groups, strict=True):
        if tally.cast > group.people:
            yield f"Group {group.id} has {group.people} people, but {tally.cast} votes on one."
    for count in ("agrees", "disagrees", "passes"):
        inside = sum(getattr(tally, count) for tally in voted.groups)
        if inside > getattr(voted.everybody, count):
            yield f"On comment {voted.comment!r} the groups have more {count} than everybody."


def _mention_problems(opinions: Opinions) -> Iterator[str]:
    """What is said of a comment is what its votes say."""
    voted = {voted.comment: voted for voted in opinions.comments}
    mentioned = [position.comment for position in opinions.shared]
    mentioned += [*opinions.splits, *opinions.unsure]
    mentioned += [mark.comment for group in opinions.groups for mark in group.marks]
    for id in dict.fromkeys(mentioned):
        if id not in voted:
            yield f"The opinions speak of comment {id!r}, on which nobody voted."
    for at, group in enumerate(opinions.groups):
        for mark in group.marks:
            if mark.comment in voted:
                share = voted[mark.comment].groups[at].share(mark.stance)
                if abs(share - mark.share) > ROUNDING:
                    yield (
                        f"Group {group.id} is said to {mark.stance} with comment {mark.comment!r} "
                        f"by {mark.share:.4f}, but it is {share:.4f}."
                    )
