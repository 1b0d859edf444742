"""Whether the figures of a report are what one gets by counting again."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.apps.report.model.comment import Comment, Fate
from holdfast.apps.report.model.document import Quote, Report, ReportSubtopic, ReportTopic, Stage
from holdfast.apps.report.model.taxonomy import OTHER
from holdfast.apps.report.outputs.traversal import claim_positions, quotes, quotes_of

ROUNDING = 0.0001
"""Shares are rounded to four digits."""


def count_problems(report: Report) -> Iterator[str]:
    """Counts over all, and those printed beside topics, subtopics and claims."""
    for name, counted in _counted(report).items():
        stated = getattr(report.counts, name)
        if stated != counted:
            yield f"The report says {stated} {name}, but there are {counted}."
    for topic in report.topics:
        yield from _topic_problems(topic)
    for position in claim_positions(report):
        yield from _people_problem(
            f"Claim {position.claim.number}", position.claim.people, position.claim.quotes
        )


def _counted(report: Report) -> dict[str, int]:
    named = [topic for topic in report.topics if topic.id != OTHER]
    quote_count = len(list(quotes(report)))
    return {
        "comments": len(report.comments),
        "people": len({comment.speaker for comment in report.comments}),
        "claims": sum(1 for _ in claim_positions(report)),
        "extracted": quote_count,
        "quotes": quote_count,
        "topics": len(named),
        "subtopics": sum(len(topic.subtopics) for topic in named),
    }


def _topic_problems(topic: ReportTopic) -> Iterator[str]:
    claims = sum(len(subtopic.claims) for subtopic in topic.subtopics)
    if topic.claims != claims:
        yield f"Topic {topic.id} says {topic.claims} claims, but has {claims}."
    quoted = len({quote.comment for quote in quotes_of(topic)})
    if topic.comments < quoted:
        yield f"Topic {topic.id} says {topic.comments} comments, but quotes {quoted}."
    for section in (topic, *topic.subtopics):
        kind = "Subtopic" if isinstance(section, ReportSubtopic) else "Topic"
        yield from _people_problem(
            f"{kind} {section.id}", section.people, tuple(quotes_of(section))
        )


def _people_problem(figure: str, stated: int, quotes: tuple[Quote, ...]) -> Iterator[str]:
    people = len({quote.speaker for quote in quotes})
    if stated != people:
        yield f"{figure} says {stated} people, but {people} are quoted."


# --- rows and losses ------------------------------------------------------------------------------


def funnel_problems(report: Report) -> Iterator[str]:
    """Every row and every draft is accounted for."""
    stages = {stage.name: stage for stage in report.funnel}
    for name, counted in _stages(report).items():
        if name not in stages:
            yield f"The funnel has no stage {name!r}."
        elif stages[name].count != counted:
            yield f"The funnel says {stages[name].count} for {name!r}, but there are {counted}."
    for before, after in (
        ("rows", "comments"),
        ("comments", "speaking"),
        ("drafts", "extracted"),
        ("extracted", "claims"),
    ):
        if before in stages and after in stages:
            yield from _leak(stages[before], stages[after])
    yield from _left_out_problems(report)


def _stages(report: Report) -> dict[str, int]:
    counts = report.counts
    speaking = len({quote.comment for quote in quotes(report)})
    return {
        "rows": counts.rows,
        "comments": counts.comments,
        "speaking": speaking,
        "extracted": counts.extracted,
        "claims": counts.claims,
    }


def _leak(before: Stage, after: Stage) -> Iterator[str]:
    lost = sum(reason.count for reason in after.lost)
    if before.count - lost != after.count:
        yield (
            f"Between {before.name!r} ({before.count}) and {after.name!r} ({after.count}) "
            f"{lost} are accounted for, but {before.count - after.count} are gone."
        )


def _left_out_problems(report: Report) -> Iterator[str]:
    missing = report.counts.rows - report.counts.comments
    if len(report.left_out) > missing:
        yield f"{len(report.left_out)} rows are listed as left out, but only {missing} were."
    ids = {comment.id for comment in report.comments}
    for row in report.left_out:
        if row.fate == Fate.KEPT or row.id in ids:
            yield f"Row {row.row} is listed as left out although it is in the report."


# --- coverage -------------------------------------------------------------------------------------


def coverage_problems(report: Report) -> Iterator[str]:
    """Shares, measured again. Where comments are placed is not in the report: of `placed` only the
    bounds are known."""
    speaking, quoted = _speaking(report), _quoted_characters(report)
    stated = report.coverage
    if abs(stated.speaking - speaking) > ROUNDING:
        yield (
            f"The report says that {stated.speaking:.4f} of the comments make a claim, but it is "
            f"{speaking:.4f}."
        )
    if abs(stated.quoted_characters - quoted) > ROUNDING:
        yield (
            f"The report says that {stated.quoted_characters:.4f} of the text is quoted, but it "
            f"is {quoted:.4f}."
        )
    least = _least_placed(report)
    if not least - ROUNDING <= stated.placed <= 1:
        yield (
            f"The report says that {stated.placed:.4f} of the comments are in a topic, but it is "
            f"at least {least:.4f}."
        )


def _speaking(report: Report) -> float:
    return len({quote.comment for quote in quotes(report)}) / (len(report.comments) or 1)


def _least_placed(report: Report) -> float:
    named = [topic for topic in report.topics if topic.id != OTHER]
    quoted = len({quote.comment for topic in named for quote in quotes_of(topic)})
    return max([quoted, *(topic.comments for topic in named)]) / (len(report.comments) or 1)


def _quoted_characters(report: Report) -> float:
    spans: dict[str, list[tuple[int, int]]] = {}
    for quote in quotes(report):
        spans.setdefault(quote.comment, []).append((quote.start, quote.end))
    total = sum(len(comment.text) for comment in report.comments)
    return sum(_inside(comment, spans.get(comment.id, [])) for comment in report.comments) / (
        total or 1
    )


def _inside(comment: Comment, spans: list[tuple[int, int]]) -> int:
    """How many characters of a comment are inside a quote; what is quoted twice counts once."""
    inside = bytearray(len(comment.text))
    for start, end in spans:
        inside[start:end] = b"\x01" * len(inside[start:end])
    return sum(inside)
