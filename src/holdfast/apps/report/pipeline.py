"""The pipeline `report`: comments in, a report that people can trust out.

    comments ─► clustering ─► claims ┄┄► sort_and_deduplicate ─► summaries ─┬─► report
                                  (streams)                  └─► cruxes ────┘

The names and the order are those of the earlier report worker. Every comment's claims, every
subtopic's groups, every topic's summary and every crux is a checkpoint of its own: a crash costs at
most what was in flight."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from holdfast.apps.report.analyst import Analysts
from holdfast.apps.report.assembly import assemble
from holdfast.apps.report.checking import (
    check_clustering,
    check_groups,
    check_sentences,
)
from holdfast.apps.report.claim_extraction import extract_claims, tally
from holdfast.apps.report.cruxes import from_draft, from_votes, gather
from holdfast.apps.report.model.claim import (
    ClaimGroup,
    Claims,
    Extraction,
)
from holdfast.apps.report.model.comment import CommentSet
from holdfast.apps.report.model.crux import Crux, Cruxes
from holdfast.apps.report.model.summary import Sentence, Summaries, TopicSummary
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Subtopic
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.sorting import CompleteSubtopic, Sorted, SubtopicCollector, sort
from holdfast.apps.report.step_inputs import (
    StepInputs,
    all_rows,
    by_comment,
    kept_comments,
    load_inputs,
    load_votes,
    with_other,
)
from holdfast.apps.report.step_results import StepResults
from holdfast.apps.report.voting import ballots, most_divided
from holdfast.model.items import Items
from holdfast.model.pipeline import Pipeline
from holdfast.ports.context import BlockingContext, Context

LONG = "12h"
"""A rate limit can make a large file last; a crash or a stop costs nothing, so there is no reason
to hurry."""
TOLERATED = 0.1
"""The share of comments that may fail to be analysed, each named in the report. More of them fail
the step."""

report: Pipeline[ReportRequest] = Pipeline(
    "report", input=ReportRequest, timeout=LONG, key=lambda request: request.key
)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The result of a run: where each file is, and the figures that people ask for first."""

    id: str
    model: str
    files: dict[str, str]
    """File name → where it is in the blob store."""
    people: int
    comments: int
    topics: int
    claims: int
    quotes: int
    coverage: float
    calls: int = 0
    cost: float | None = 0.0
    """US dollars; None if the price of a call is unknown."""


@report.step(timeout=LONG)
def comments(request: ReportRequest, ctx: BlockingContext) -> CommentSet:
    """Read the file: comments in parts, and what became of every row."""
    from holdfast.apps.report.comment_storage import read_comments

    return read_comments(request, ctx)


@report.step(timeout=LONG)
async def clustering(request: ReportRequest, comments: CommentSet, ctx: Context) -> Clustering:
    """Topics and subtopics over all comments, and every comment in at least one of them."""
    inputs = await load_inputs(request, comments, ctx)
    if not inputs.comments:
        return Clustering((), ())
    everything = list(inputs.comments.values())
    return check_clustering(await inputs.analyst.cluster(everything, inputs.brief, ctx), everything)


# --- claims ---------------------------------------------------------------------------------------


@report.step(timeout=LONG)
async def claims(
    request: ReportRequest, comments: CommentSet, clustering: Clustering, ctx: Context
) -> Claims:
    """What each comment says, one thought at a time, each with words that are really there."""
    inputs = await load_inputs(request, comments, ctx)
    placed = by_comment(clustering.placements)

    async def extract(comment: str, ctx: Context) -> Extraction:
        return await extract_claims(
            inputs, inputs.comments[comment], placed[comment], clustering.topics, ctx
        )

    # Subtopic by subtopic, so that they are complete one after the other.
    order = sorted(placed, key=lambda id: placed[id][0].subtopic)
    extractions = await ctx.map(
        extract,
        order,
        concurrency=inputs.analyst.in_flight,
        on_error="collect",
        max_failures=max(3, int(TOLERATED * len(order))),
    )
    return tally(dict(zip(order, extractions, strict=True)), list(inputs.comments))


# --- groups ---------------------------------------------------------------------------------------


@report.step(timeout=LONG)
async def sort_and_deduplicate(
    request: ReportRequest,
    comments: CommentSet,
    clustering: Clustering,
    claims: Items[Extraction],
    ctx: Context,
) -> Sorted:
    """The same claim made by several people becomes one, subtopic by subtopic, while others are
    still being read."""
    inputs = await load_inputs(request, comments, ctx)
    topics = with_other(clustering, inputs.brief.language)
    subtopics = {subtopic.id: subtopic for topic in topics for subtopic in topic.subtopics}

    async def group(complete: CompleteSubtopic, ctx: Context) -> list[ClaimGroup]:
        return await _grouped(inputs, subtopics[complete.subtopic], complete, ctx)

    groups: list[list[ClaimGroup]] = await ctx.map(
        group,
        SubtopicCollector(clustering.placements).collect(claims),
        key=lambda complete: complete.subtopic,
        concurrency=64,
    )
    return sort(topics, chain.from_iterable(groups), request.sort)


async def _grouped(
    inputs: StepInputs, subtopic: Subtopic, complete: CompleteSubtopic, ctx: Context
) -> list[ClaimGroup]:
    proposed = (
        await inputs.analyst.group(subtopic, complete.claims, inputs.brief, ctx)
        if len(complete.claims) > 1
        else []
    )
    return check_groups(subtopic, complete.claims, proposed)


# --- summaries and cruxes, side by side -----------------------------------------------------------


@report.step(timeout=LONG)
async def summaries(
    request: ReportRequest,
    comments: CommentSet,
    clustering: Clustering,
    sort_and_deduplicate: Sorted,
    ctx: Context,
) -> Summaries:
    """Each topic, then everything, in sentences that cite the claims they rest on."""
    inputs = await load_inputs(request, comments, ctx)
    topics = sort_and_deduplicate.in_order(with_other(clustering, inputs.brief.language))
    groups = sort_and_deduplicate.by_topic(topics)
    named = {topic.id: topic for topic in topics if topic.id != OTHER}

    async def summarise(topic: str, ctx: Context) -> tuple[TopicSummary, int]:
        proposed = await inputs.analyst.summarise(named[topic], groups[topic], inputs.brief, ctx)
        kept, unfounded = check_sentences(proposed, (group.id for group in groups[topic]))
        return TopicSummary(topic, tuple(kept)), unfounded

    written: list[tuple[TopicSummary, int]] = await ctx.map(summarise, list(named), concurrency=64)
    about = tuple(summary for summary, _ in written)

    async def overview(ctx: Context) -> list[Sentence]:
        if not named:
            return []
        return await inputs.analyst.overview(list(named.values()), about, groups, inputs.brief, ctx)

    proposed = await ctx.step("overview", overview)
    findings, unfounded = check_sentences(
        proposed, (group.id for group in sort_and_deduplicate.groups)
    )
    return Summaries(tuple(findings), about, unfounded + sum(count for _, count in written))


@report.step(timeout=LONG, when=lambda request: request.cruxes)
async def cruxes(
    request: ReportRequest,
    comments: CommentSet,
    clustering: Clustering,
    sort_and_deduplicate: Sorted,
    ctx: Context,
) -> Cruxes:
    """For each subtopic the statement that divides most: from votes where people voted, else from
    what they said."""
    inputs = await load_inputs(request, comments, ctx)
    votes = ballots(inputs.comments.values(), await load_votes(comments, ctx))
    subtopics = {
        subtopic.id: (topic.id, subtopic)
        for topic in clustering.topics
        for subtopic in topic.subtopics
    }
    groups = sort_and_deduplicate.by_subtopic()

    async def find(id: str, ctx: Context) -> Crux | None:
        topic, subtopic = subtopics[id]
        if (voted := most_divided(groups[id], votes, inputs.comments)) is not None:
            return from_votes(topic, *voted)
        if len({speaker for group in groups[id] for speaker in group.speakers}) < 2:
            return None
        draft = await inputs.analyst.crux(subtopic, groups[id], inputs.brief, ctx)
        return from_draft(topic, id, draft, groups[id]) if draft else None

    candidates = [
        id for id in sort_and_deduplicate.subtopics if id in subtopics and len(groups[id]) > 1
    ]
    cruxes: list[Crux | None] = await ctx.map(find, candidates, concurrency=64)
    return gather(crux for crux in cruxes if crux is not None)


# --- the report -----------------------------------------------------------------------------------


@report.step(timeout=LONG, name="report")
def report_(
    request: ReportRequest,
    comments: CommentSet,
    clustering: Clustering,
    claims: Claims,
    sort_and_deduplicate: Sorted,
    summaries: Summaries,
    cruxes: Cruxes | None,
    ctx: BlockingContext,
) -> ReportFiles:
    """All of it in one document, and that printed as a page, tables and text."""
    from holdfast.apps.report.assembly import MOST_LEFT_OUT
    from holdfast.apps.report.comment_storage import read_ballots
    from holdfast.apps.report.rendering import render_files

    kept = {comment.id: comment for comment in kept_comments(comments, ctx)}
    left_out = [row for row in all_rows(comments, ctx) if row.fate != "kept"]
    results = StepResults(
        request,
        comments,
        kept,
        clustering,
        claims,
        sort_and_deduplicate,
        summaries,
        cruxes or Cruxes(()),
        read_ballots(comments, kept, ctx),
        tuple(left_out[:MOST_LEFT_OUT]),
    )
    document = assemble(results, ctx.use(Analysts).named(request.model), ctx.steps)
    files = {
        name: ctx.artifact(name, data)
        for name, data in render_files(document, all_rows(comments, ctx)).items()
    }
    return ReportFiles(
        document.id,
        document.method.analyst,
        files,
        document.counts.people,
        document.counts.comments,
        document.counts.topics,
        document.counts.claims,
        document.counts.quotes,
        document.coverage.placed,
        sum(step.calls for step in document.made.steps),
        document.made.cost,
    )
