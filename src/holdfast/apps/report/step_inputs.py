"""What the steps of a report start from: the comments, the analyst, and the brief."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import msgspec

from holdfast.apps.report.analyst import Analyst, Analysts
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment, CommentSet, Row, Votes
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.voting import ballots_in
from holdfast.errors import Permanent
from holdfast.model.names import path_part
from holdfast.ports.context import BlockingContext, Context

_comments = msgspec.json.Decoder(list[Comment])
_rows = msgspec.json.Decoder(list[Row])
_votes = msgspec.json.Decoder(Votes)

OTHER_NAMES = {
    "fr": "Autres",
    "de": "Sonstiges",
    "es": "Otros",
    "ja": "その他",
    "zh": "其他",
    "ar": "أخرى",
}


@dataclass(frozen=True, slots=True)
class StepInputs:
    analyst: Analyst
    brief: Brief
    comments: dict[str, Comment]
    """By id, in the order of the file."""


async def load_inputs(request: ReportRequest, comment_set: CommentSet, ctx: Context) -> StepInputs:
    """Everything a step needs, read anew: nothing is kept between steps but what is stored."""
    comments: dict[str, Comment] = {}
    for part in comment_set.kept_parts:
        for comment in _comments.decode(await ctx.read(part)):
            comments[comment.id] = comment
    if votes := await load_votes(comment_set, ctx):
        comments |= counted(comments, votes)
    budget = await current_budget(request, ctx)
    brief = replace(request.brief(comment_set.language), budget=budget)
    return StepInputs(ctx.use(Analysts).named(request.model), brief, comments)


async def current_budget(request: ReportRequest, ctx: Context) -> float | None:
    """What the run may spend: as the request says, or as the last of the later budgets says."""
    budget = request.budget
    for number in count(1):
        try:
            budget = float(await ctx.read(budget_key(ctx.tenant, ctx.run_id, number)))
        except Permanent:  # no further one
            return budget
    return budget


def budget_key(tenant: str, run: str, number: int) -> str:
    """Where the nth later budget of a run is kept: created once and never changed, like everything
    in the blob store."""
    return f"{path_part(tenant)}/{run}/budgets/{number}"


def kept_comments(comment_set: CommentSet, ctx: BlockingContext) -> tuple[Comment, ...]:
    return tuple(
        comment for part in comment_set.kept_parts for comment in _comments.decode(ctx.read(part))
    )


def all_rows(comment_set: CommentSet, ctx: BlockingContext) -> Iterator[Row]:
    """Every row of the input, one part in memory at a time."""
    for part in comment_set.row_parts:
        yield from _rows.decode(ctx.read(part))


async def load_votes(comment_set: CommentSet, ctx: Context) -> Votes | None:
    return _votes.decode(await ctx.read(comment_set.votes)) if comment_set.votes else None


def counted(comments: Mapping[str, Comment], votes: Votes) -> dict[str, Comment]:
    """The comments that the matrix has votes on, with its counts instead of the file's."""
    ballots = ballots_in(votes)
    return {
        id: replace(
            comments[id], agrees=ballot.agrees, disagrees=ballot.disagrees, passes=ballot.passes
        )
        for id, ballot in ballots.items()
        if id in comments
    }


def other_topic(language: str) -> Topic:
    """Where comments are that fit nowhere."""
    name = OTHER_NAMES.get(language.split("-")[0], "Other")
    return Topic(OTHER, name, "", (Subtopic(OTHER, name),))


def with_other(clustering: Clustering, language: str) -> tuple[Topic, ...]:
    """All topics, the one for the rest last, if anything is in it."""
    used = any(placement.subtopic == OTHER for placement in clustering.placements)
    return (*clustering.topics, other_topic(language)) if used else clustering.topics


def by_comment(placements: Iterable[Placement]) -> dict[str, list[Placement]]:
    grouped: dict[str, list[Placement]] = {}
    for placement in placements:
        grouped.setdefault(placement.comment, []).append(placement)
    return grouped
