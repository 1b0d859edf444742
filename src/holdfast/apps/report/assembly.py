"""Putting the report together: from the results of all steps to the one document that everything is
printed from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from holdfast.apps.report.analyst import Analyst
from holdfast.apps.report.figures import count, facets, measure_coverage
from holdfast.apps.report.funnel import funnel
from holdfast.apps.report.model.claim import ClaimGroup, quote_id
from holdfast.apps.report.model.comment import CommentSet
from holdfast.apps.report.model.crux import controversy
from holdfast.apps.report.model.document import (
    SCHEMA,
    Made,
    Matrix,
    Method,
    Quote,
    Report,
    ReportClaim,
    ReportCrux,
    ReportSubtopic,
    ReportTopic,
    StepCost,
    VoteCount,
)
from holdfast.apps.report.model.stance import VoteTally
from holdfast.apps.report.model.taxonomy import Clustering, Subtopic, Topic
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.step_inputs import with_other
from holdfast.apps.report.step_results import StepResults
from holdfast.model.run import StepRecord

MOST_LEFT_OUT = 2_000
"""Rows that were not analysed and are listed in the document; rows.csv has all of them."""


def assemble(results: StepResults, analyst: Analyst, steps: Mapping[str, StepRecord]) -> Report:
    """The document. Everything in it is derived from what was checked and stored before."""
    request, brief = results.request, results.request.brief(results.source.language)
    cruxes = tuple(ReportCrux.of(crux) for crux in results.cruxes.cruxes)
    topics = _topics(results, cruxes)
    return Report(
        schema=SCHEMA,
        id=request.report_id or request.digest,
        title=request.title or _title(results.source),
        question=request.question,
        description=request.description,
        language=brief.language,
        counts=count(results, topics),
        coverage=measure_coverage(results),
        findings=results.summaries.findings,
        topics=topics,
        cruxes=cruxes,
        matrix=Matrix(
            results.cruxes.speakers, tuple(crux.id for crux in cruxes), results.cruxes.matrix
        ),
        facets=facets(results.comments.values()),
        funnel=funnel(
            results.source,
            results.comments,
            results.left_out,
            results.claims,
            len(results.sorted.groups),
        ),
        comments=tuple(results.comments.values()),
        left_out=results.left_out,
        map=results.clustering.map,
        source=results.source.source,
        method=_method(results, analyst),
        made=_made(steps),
        warnings=results.source.warnings,
        opinions=results.opinions,
        reviewer=_model_name(request.reviewer),
        remarks=results.summaries.remarks,
    )


def _title(source: CommentSet) -> str:
    """A file's name, made readable, where nobody gave a title."""
    stem = source.source.filename.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    words = stem.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] or "Comments"


# --- topics, claims, quotes -----------------------------------------------------------------------


def _topics(results: StepResults, cruxes: Sequence[ReportCrux]) -> tuple[ReportTopic, ...]:
    language = results.request.brief(results.source.language).language
    topics = {topic.id: topic for topic in with_other(results.clustering, language)}
    groups: dict[str, list[ClaimGroup]] = {}
    for group in results.sorted.groups:
        groups.setdefault(group.subtopic, []).append(group)
    numbers = {group.id: number for number, group in enumerate(results.sorted.groups, 1)}
    return tuple(
        _topic(topics[id], groups, numbers, results, cruxes) for id in results.sorted.topics
    )


def _topic(
    topic: Topic,
    groups: dict[str, list[ClaimGroup]],
    numbers: dict[str, int],
    results: StepResults,
    cruxes: Sequence[ReportCrux],
) -> ReportTopic:
    by_id = {subtopic.id: subtopic for subtopic in topic.subtopics}
    subtopics = [
        _subtopic(by_id[id], groups[id], numbers, results)
        for id in results.sorted.subtopics
        if id in by_id
    ]
    summaries = {summary.topic: summary.sentences for summary in results.summaries.topics}
    scores = [crux.controversy for crux in cruxes if crux.topic == topic.id]
    return ReportTopic(
        id=topic.id,
        name=topic.name,
        description=topic.description,
        people=_people(group for subtopic in subtopics for group in groups[subtopic.id]),
        claims=sum(len(subtopic.claims) for subtopic in subtopics),
        comments=_comments_in(by_id, results.clustering),
        summary=summaries.get(topic.id, ()),
        subtopics=tuple(subtopics),
        controversy=round(sum(scores) / len(scores), 4) if scores else None,
        question=topic.question,
    )


def _subtopic(
    subtopic: Subtopic, groups: list[ClaimGroup], numbers: dict[str, int], results: StepResults
) -> ReportSubtopic:
    claims = tuple(_claim(group, numbers[group.id], results) for group in groups)
    return ReportSubtopic(subtopic.id, subtopic.name, subtopic.description, _people(groups), claims)


def _comments_in(subtopics: Collection[str], clustering: Clustering) -> int:
    placements = clustering.placements
    return len({placement.comment for placement in placements if placement.subtopic in subtopics})


def _people(groups: Iterable[ClaimGroup]) -> int:
    return len({speaker for group in groups for speaker in group.speakers})


def _claim(group: ClaimGroup, number: int, results: StepResults) -> ReportClaim:
    quotes = tuple(
        Quote(
            quote_id(claim.id),
            claim.id,
            claim.comment,
            results.comments[claim.comment].row,
            claim.speaker,
            claim.start,
            claim.end,
            claim.quote,
            claim.statement,
        )
        for claim in group.members
    )
    return ReportClaim(
        group.id,
        number,
        group.statement,
        len(group.speakers),
        quotes,
        _vote_count(group.votes) if group.votes else None,
    )


def _vote_count(tally: VoteTally) -> VoteCount:
    score = controversy(tally.agrees, tally.disagrees, tally.cast)
    return VoteCount(tally.agrees, tally.disagrees, tally.passes, round(score, 4))


# --- how it was made ------------------------------------------------------------------------------


def _method(results: StepResults, analyst: Analyst) -> Method:
    request = results.request
    brief = request.brief(results.source.language)
    notes = [
        *analyst.notes(results.source.language, {crux.basis for crux in results.cruxes.cruxes}),
        *results.clustering.notes,
        *results.cruxes.notes,
    ]
    return Method(
        analyst=analyst.name,
        generated=analyst.generates,
        votes=bool(results.opinions.comments),
        sort=request.sort,
        options=_options(request),
        prompts=tuple(analyst.prompts(brief)),
        notes=tuple(dict.fromkeys(notes)),
        failed=tuple(results.claims.failed.items()),
    )


def _options(request: ReportRequest) -> dict[str, str]:
    """What was asked for beyond the defaults, in words."""
    hidden = {
        "file",
        "votes",
        "rows",
        "report_id",
        "title",
        "question",
        "description",
        "prompts",
        "fresh",
        "budget",
        "reviewed",
    }
    options = request.model_dump(mode="json", exclude=hidden, exclude_defaults=True)
    models = {name: _model_name(options[name]) for name in ("model", "reviewer") if name in options}
    return {name: str(value) for name, value in (options | models).items()}


def _model_name(address: str) -> str:
    """A model without where it is served and at which pace: readers of the report need not know
    hosts of ours."""
    return address.partition("?")[0]


def _made(steps: Mapping[str, StepRecord]) -> Made:
    costs = tuple(_step_cost(record) for name, record in steps.items() if name != "report")
    known = [cost.cost for cost in costs if cost.cost is not None]
    return Made(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        software=f"holdfast {version('holdfast')}",
        seconds=round(sum(cost.seconds for cost in costs), 3),
        steps=costs,
        cost=round(sum(known), 6) if len(known) == len(costs) else None,
    )


def _step_cost(record: StepRecord) -> StepCost:
    usage = record.usage
    cost = None if usage.unpriced else round(usage.cost, 6)
    seconds = round(record.duration or 0.0, 3)
    return StepCost(
        record.step, seconds, usage.calls, usage.input_tokens, usage.output_tokens, cost
    )
