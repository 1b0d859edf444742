"""What a step has on its desk: the comments, the analyst, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

import msgspec

from holdfast.apps.report.analyst import Analyst, Analysts
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment, CommentSet, Row, Votes
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.request import ReportRequest
from holdfast.errors import Permanent
from holdfast.ports.context import BlockingContext, Context

T = TypeVar("T")

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


async def desk(request: ReportRequest, found: CommentSet, ctx: Context) -> StepInputs:
    """Everything a step needs, read anew: nothing is kept between steps but what is stored."""
    comments: dict[str, Comment] = {}
    for part in found.kept_parts:
        for comment in _comments.decode(await ctx.read(part)):
            comments[comment.id] = comment
    brief = replace(request.brief(found.language), budget=await budget(request, ctx))
    return StepInputs(ctx.use(Analysts).named(request.model), brief, comments)


async def budget(request: ReportRequest, ctx: Context) -> float | None:
    """What the run may spend: as asked for, or as somebody granted later, the last word
    counting."""
    granted = request.budget
    for number in count(1):
        try:
            granted = float(await ctx.read(budget_key(ctx.tenant, ctx.run_id, number)))
        except Permanent:  # no further one
            return granted
    return granted


def budget_key(tenant: str, run: str, number: int) -> str:
    """Where the nth budget granted to a run is kept: created once and never changed, like
    everything there."""
    return f"{tenant}/{run}/budget_key/{number}"


def kept_comments(found: CommentSet, ctx: BlockingContext) -> tuple[Comment, ...]:
    return tuple(
        comment for part in found.kept_parts for comment in _comments.decode(ctx.read(part))
    )


def all_rows(found: CommentSet, ctx: BlockingContext) -> Iterator[Row]:
    """Every row of the input, one part in memory at a time."""
    for part in found.row_parts:
        yield from _rows.decode(ctx.read(part))


async def votes(found: CommentSet, ctx: Context) -> Votes | None:
    return _votes.decode(await ctx.read(found.votes)) if found.votes else None


def other_topic(language: str) -> Topic:
    """Where comments are that fit nowhere."""
    name = OTHER_NAMES.get(language.split("-")[0], "Other")
    return Topic(OTHER, name, "", (Subtopic(OTHER, name),))


def with_other(clustering: Clustering, language: str) -> tuple[Topic, ...]:
    """All topics, the one for the rest last, if anything is in it."""
    used = any(one.subtopic == OTHER for one in clustering.placements)
    return (*clustering.topics, other_topic(language)) if used else clustering.topics


def by_comment(placements: Iterable[Placement]) -> dict[str, list[Placement]]:
    found: dict[str, list[Placement]] = {}
    for one in placements:
        found.setdefault(one.comment, []).append(one)
    return found


def parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
