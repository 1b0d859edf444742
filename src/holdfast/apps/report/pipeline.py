"""The pipeline `report`: comments in, a report that people can trust out.

    comments ─► clustering ─► claims ┄┄► sort_and_deduplicate ─► summaries ─┬─► report
                                  (streams)                  └─► cruxes ────┘

The names and the order are those of seed 000. Every comment's claims, every subtopic's groups,
every topic's summary and every crux is a checkpoint of its own: a crash costs at most what was in
flight."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.report.analyst import Analysts
from holdfast.apps.report.assembly import StepResults, assemble
from holdfast.apps.report.checking import (
    check_clustering,
    check_draft,
    check_groups,
    check_sentences,
    without_repeats,
)
from holdfast.apps.report.cruxes import from_draft, from_votes, gather
from holdfast.apps.report.model.claim import (
    ClaimGroup,
    Claims,
    DroppedDraft,
    DropReason,
    Extraction,
)
from holdfast.apps.report.model.comment import Comment, CommentSet
from holdfast.apps.report.model.crux import Crux, Cruxes
from holdfast.apps.report.model.summary import Sentence, Summaries, TopicSummary
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.sorting import CompleteSubtopic, Sorted, SubtopicCollector, sort
from holdfast.apps.report.step_inputs import (
    StepInputs,
    all_rows,
    by_comment,
    desk,
    kept_comments,
    votes,
    with_other,
)
from holdfast.apps.report.voting import ballots, most_divided
from holdfast.model.items import Items
from holdfast.model.pipeline import Pipeline
from holdfast.ports.context import BlockingContext, Context, Failure

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
    on = await desk(request, comments, ctx)
    if not on.comments:
        return Clustering((), ())
    everything = list(on.comments.values())
    return check_clustering(await on.analyst.cluster(everything, on.brief, ctx), everything)


# --- claims ---------------------------------------------------------------------------------------


@report.step(timeout=LONG)
async def claims(
    request: ReportRequest, comments: CommentSet, clustering: Clustering, ctx: Context
) -> Claims:
    """What each comment says, one thought at a time, each with words that are really there."""
    on = await desk(request, comments, ctx)
    placed = by_comment(clustering.placements)

    async def extract(comment: str, ctx: Context) -> Extraction:
        return await _extraction(on, on.comments[comment], placed[comment], clustering.topics, ctx)

    together = sorted(
        placed, key=lambda each: placed[each][0].subtopic
    )  # subtopics fill one after the other
    found = await ctx.map(
        extract,
        together,
        concurrency=on.analyst.in_flight,
        on_error="collect",
        max_failures=max(3, int(TOLERATED * len(together))),
    )
    return _tally(dict(zip(together, found, strict=True)), list(on.comments))


async def _extraction(
    on: StepInputs,
    comment: Comment,
    placements: list[Placement],
    topics: tuple[Topic, ...],
    ctx: Context,
) -> Extraction:
    drafts = await on.analyst.extract(comment, placements, topics, on.brief, ctx)
    allowed = [one.subtopic for one in placements]
    checked, repaired = [], 0
    for draft in drafts:
        one = check_draft(draft, comment, allowed)
        if isinstance(one, DroppedDraft) and one.reason == DropReason.QUOTE_NOT_FOUND:
            words = await on.analyst.requote(comment, draft, on.brief, ctx)
            one = check_draft(
                type(draft)(draft.statement, words or draft.quote, draft.subtopic), comment, allowed
            )
            repaired += not isinstance(one, DroppedDraft)
        checked.append(one)
    kept, lost = without_repeats(checked)
    return Extraction(comment.id, tuple(kept), tuple(lost), repaired)


def _tally(found: dict[str, Extraction | Failure], order: list[str]) -> Claims:
    done = [one for each in order if isinstance(one := found[each], Extraction)]
    return Claims(
        comments=len(order),
        claims=sum(len(one.claims) for one in done),
        repaired=sum(one.repaired for one in done),
        lost=tuple(lost for one in done for lost in one.lost),
        silent=tuple(one.comment for one in done if not one.claims),
        failed={each: str(one.error) for each in order if isinstance(one := found[each], Failure)},
    )


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
    on = await desk(request, comments, ctx)
    topics = with_other(clustering, on.brief.language)
    subtopics = {one.id: one for topic in topics for one in topic.subtopics}

    async def group(filled: CompleteSubtopic, ctx: Context) -> list[ClaimGroup]:
        return await _grouped(on, subtopics[filled.subtopic], filled, ctx)

    found: list[list[ClaimGroup]] = await ctx.map(
        group,
        SubtopicCollector(clustering.placements).of(claims),
        key=lambda filled: filled.subtopic,
        concurrency=64,
    )
    return sort(topics, [one for groups in found for one in groups], request.sort)


async def _grouped(
    on: StepInputs, subtopic: Subtopic, filled: CompleteSubtopic, ctx: Context
) -> list[ClaimGroup]:
    proposed = (
        await on.analyst.group(subtopic, filled.claims, on.brief, ctx)
        if len(filled.claims) > 1
        else []
    )
    return check_groups(subtopic, filled.claims, proposed)


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
    on = await desk(request, comments, ctx)
    topics = _in_order(with_other(clustering, on.brief.language), sort_and_deduplicate)
    groups = _by_topic(topics, sort_and_deduplicate)
    told = {topic.id: topic for topic in topics if topic.id != OTHER}

    async def summarise(topic: str, ctx: Context) -> tuple[TopicSummary, int]:
        proposed = await on.analyst.summarise(told[topic], groups[topic], on.brief, ctx)
        kept, unfounded = check_sentences(proposed, (group.id for group in groups[topic]))
        return TopicSummary(topic, tuple(kept)), unfounded

    written: list[tuple[TopicSummary, int]] = await ctx.map(summarise, list(told), concurrency=64)
    about = tuple(summary for summary, _ in written)

    async def overview(ctx: Context) -> list[Sentence]:
        return (
            await on.analyst.overview(list(told.values()), about, groups, on.brief, ctx)
            if told
            else []
        )

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
    on = await desk(request, comments, ctx)
    given = ballots(on.comments.values(), await votes(comments, ctx))
    subtopics = {one.id: (topic.id, one) for topic in clustering.topics for one in topic.subtopics}
    groups = _by_subtopic(sort_and_deduplicate)

    async def find(subtopic: str, ctx: Context) -> Crux | None:
        topic, own = subtopics[subtopic]
        if (voted := most_divided(groups[subtopic], given, on.comments)) is not None:
            return from_votes(topic, *voted)
        if len({speaker for group in groups[subtopic] for speaker in group.speakers}) < 2:
            return None
        draft = await on.analyst.crux(own, groups[subtopic], on.brief, ctx)
        return from_draft(topic, subtopic, draft, groups[subtopic]) if draft else None

    asked = [
        each
        for each in sort_and_deduplicate.subtopics
        if each in subtopics and len(groups[each]) > 1
    ]
    found: list[Crux | None] = await ctx.map(find, asked, concurrency=64)
    return gather(crux for crux in found if crux is not None)


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
    found = StepResults(
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
    document = assemble(found, ctx.use(Analysts).named(request.model), ctx.steps)
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


def _in_order(topics: tuple[Topic, ...], found: Sorted) -> list[Topic]:
    known = {topic.id: topic for topic in topics}
    return [known[each] for each in found.topics]


def _by_subtopic(found: Sorted) -> dict[str, list[ClaimGroup]]:
    groups: dict[str, list[ClaimGroup]] = {each: [] for each in found.subtopics}
    for group in found.groups:
        groups[group.subtopic].append(group)
    return groups


def _by_topic(topics: list[Topic], found: Sorted) -> dict[str, list[ClaimGroup]]:
    """The groups of each topic, those with the most people first."""
    of = _by_subtopic(found)
    gathered = {
        topic.id: [group for one in topic.subtopics for group in of.get(one.id, ())]
        for topic in topics
    }
    for groups in gathered.values():
        groups.sort(key=lambda group: (-len(group.speakers), -len(group.members), group.id))
    return gathered
