"""The pipeline `report`: comments in, a report that people can trust out.

    comments ─► clustering ─► claims ┄┄► sort_and_deduplicate ─┬─► summaries ─┬─► report
        └─────► opinions          (streams)                    └─► cruxes ────┘

The names and the order are those of the earlier report worker, but for `opinions`: what people
voted for, and the groups that voted alike, which summaries and cruxes rest on. Every comment's
claims, every subtopic's groups, every topic's summary and every crux is a checkpoint of its own: a
crash costs at most what was in flight."""

from __future__ import annotations

import asyncio
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
from holdfast.apps.report.cruxes import (
    from_draft,
    from_votes,
    gather,
    has_two_sides,
    has_votes,
)
from holdfast.apps.report.model.claim import (
    ClaimGroup,
    Claims,
    Extraction,
)
from holdfast.apps.report.model.comment import CommentSet
from holdfast.apps.report.model.crux import Crux, Cruxes
from holdfast.apps.report.model.opinion import Opinions
from holdfast.apps.report.model.remark import Remark
from holdfast.apps.report.model.summary import Sentence, Summaries, TopicSummary
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Subtopic
from holdfast.apps.report.questions import cluster_questions
from holdfast.apps.report.request import ReportRequest, time_limit
from holdfast.apps.report.review import apply_review
from holdfast.apps.report.self_description import describes_author
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
from holdfast.apps.report.vote_evidence import vote_evidence
from holdfast.apps.report.voting import ballots, with_votes
from holdfast.errors import Pause
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
    "report",
    input=ReportRequest,
    timeout="30m",
    timeout_for=time_limit,
    key=lambda request: request.key,
    labels=lambda request: request.labels,
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
    speaking: float = 1.0
    """The share of the comments that make a claim."""


@report.step(timeout=LONG)
def comments(request: ReportRequest, ctx: BlockingContext) -> CommentSet:
    """Read the file: comments in parts, and what became of every row."""
    from holdfast.apps.report.comment_storage import read_comments

    for wish in request.ignored:
        ctx.log.warning(wish)
    return read_comments(request, ctx)


@report.step(timeout=LONG)
async def clustering(request: ReportRequest, comments: CommentSet, ctx: Context) -> Clustering:
    """Topics and subtopics over all comments, and every comment in at least one of them."""
    inputs = await load_inputs(request, comments, ctx)
    if not inputs.comments:
        return Clustering((), ())
    everything = list(inputs.comments.values())
    proposed = await cluster_questions(inputs.analyst, everything, inputs.brief, ctx)
    clustering = check_clustering(proposed, everything)
    if not request.reviewed:
        return clustering
    language = inputs.brief.language
    return check_clustering(apply_review(clustering, request.reviewed, language), everything)


@report.step(timeout=LONG)
async def opinions(request: ReportRequest, comments: CommentSet, ctx: Context) -> Opinions:
    """What the votes say: what is shared, what divides, and which groups voted alike."""
    from holdfast.apps.report.opinions import find_opinions

    inputs = await load_inputs(request, comments, ctx)
    votes = await load_votes(comments, ctx)
    personal = {id for id, comment in inputs.comments.items() if describes_author(comment.text)}
    return await asyncio.to_thread(
        find_opinions, ballots(inputs.comments.values(), votes), votes, personal
    )


# --- claims ---------------------------------------------------------------------------------------


@report.step(timeout=LONG)
async def claims(
    request: ReportRequest, comments: CommentSet, clustering: Clustering, ctx: Context
) -> Claims:
    """What each comment says, one thought at a time, each with words that are really there."""
    if request.review and not request.reviewed:
        raise Pause("the topics wait for people to review them")
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
    votes = ballots(inputs.comments.values(), await load_votes(comments, ctx))
    topics = with_other(clustering, inputs.brief.language)
    subtopics = {subtopic.id: subtopic for topic in topics for subtopic in topic.subtopics}

    async def group(complete: CompleteSubtopic, ctx: Context) -> list[ClaimGroup]:
        groups = await _grouped(inputs, subtopics[complete.subtopic], complete, ctx)
        return [with_votes(group, votes, inputs.comments) for group in groups]

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


# --- cruxes and summaries -------------------------------------------------------------------------


@report.step(timeout=LONG, when=lambda request: request.cruxes)
async def cruxes(
    request: ReportRequest,
    comments: CommentSet,
    opinions: Opinions,
    clustering: Clustering,
    sort_and_deduplicate: Sorted,
    ctx: Context,
) -> Cruxes:
    """The statements that divide people: over the whole conversation where people voted, and in
    each subtopic without votes from what they said."""
    inputs = await load_inputs(request, comments, ctx)
    votes = ballots(inputs.comments.values(), await load_votes(comments, ctx))
    subtopics = {
        subtopic.id: (topic.id, subtopic)
        for topic in clustering.topics
        for subtopic in topic.subtopics
    }
    groups = sort_and_deduplicate.by_subtopic()
    voted = from_votes(
        opinions,
        votes,
        sort_and_deduplicate.groups,
        {OTHER: OTHER} | {id: topic for id, (topic, _) in subtopics.items()},
        inputs.comments,
    )

    async def find(id: str, ctx: Context) -> Crux | None:
        topic, subtopic = subtopics[id]
        draft = await inputs.analyst.crux(subtopic, groups[id], inputs.brief, ctx)
        return from_draft(topic, id, draft, groups[id]) if draft else None

    unvoted = [
        id
        for id in sort_and_deduplicate.subtopics
        if id in subtopics and has_two_sides(groups[id]) and not has_votes(groups[id], votes)
    ]
    drafted: list[Crux | None] = await ctx.map(find, unvoted, concurrency=64)
    return gather([*voted, *(crux for crux in drafted if crux is not None)])


@report.step(timeout=LONG)
async def summaries(
    request: ReportRequest,
    comments: CommentSet,
    opinions: Opinions,
    clustering: Clustering,
    sort_and_deduplicate: Sorted,
    cruxes: Cruxes | None,
    ctx: Context,
) -> Summaries:
    """Each topic, then everything, in sentences that cite the claims they rest on."""
    inputs = await load_inputs(request, comments, ctx)
    topics = sort_and_deduplicate.in_order(with_other(clustering, inputs.brief.language))
    groups = sort_and_deduplicate.by_topic(topics)
    named = {topic.id: topic for topic in topics if topic.id != OTHER}
    evidence = vote_evidence(opinions, sort_and_deduplicate.groups, inputs.comments)
    dividing = cruxes.cruxes if cruxes else ()

    async def summarise(topic: str, ctx: Context) -> tuple[TopicSummary, int]:
        own = [crux for crux in dividing if crux.topic == topic]
        proposed = await inputs.analyst.summarise(
            named[topic], groups[topic], inputs.brief, ctx, evidence, own
        )
        checked, unfounded = check_sentences(proposed, (group.id for group in groups[topic]))
        return TopicSummary(topic, tuple(checked)), unfounded

    written: list[tuple[TopicSummary, int]] = await ctx.map(summarise, list(named), concurrency=64)
    about = tuple(summary for summary, _ in written)

    async def overview(ctx: Context) -> list[Sentence]:
        if not named:
            return []
        return await inputs.analyst.overview(
            list(named.values()), about, groups, inputs.brief, ctx, evidence, dividing
        )

    proposed = await ctx.step("overview", overview)
    findings, unfounded = check_sentences(
        proposed, (group.id for group in sort_and_deduplicate.groups)
    )

    async def review(ctx: Context) -> list[Remark]:
        reviewer = ctx.use(Analysts).named(request.reviewer)
        return await reviewer.review(list(named.values()), groups, findings, inputs.brief, ctx)

    remarks = await ctx.step("review", review) if request.reviewer and named else []
    unfounded += sum(count for _, count in written)
    return Summaries(tuple(findings), about, unfounded, tuple(remarks))


# --- the report -----------------------------------------------------------------------------------


@report.step(timeout=LONG, name="report")
def report_(
    request: ReportRequest,
    comments: CommentSet,
    opinions: Opinions,
    clustering: Clustering,
    claims: Claims,
    sort_and_deduplicate: Sorted,
    summaries: Summaries,
    cruxes: Cruxes | None,
    ctx: BlockingContext,
) -> ReportFiles:
    """All of it in one document, and that printed as a page, tables and text."""
    from holdfast.apps.report.assembly import MOST_LEFT_OUT
    from holdfast.apps.report.rendering import render_files

    by_id = {comment.id: comment for comment in kept_comments(comments, ctx)}
    left_out = [row for row in all_rows(comments, ctx) if row.fate != "kept"]
    results = StepResults(
        request,
        comments,
        by_id,
        clustering,
        claims,
        sort_and_deduplicate,
        summaries,
        cruxes or Cruxes(()),
        opinions,
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
        document.coverage.speaking,
    )
