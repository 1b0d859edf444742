"""The figures of a report: how much there is, how much of what people said is in it, and what
readers can filter by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.document import Counts, Coverage, Facet, ReportTopic
from holdfast.apps.report.model.taxonomy import OTHER
from holdfast.apps.report.step_results import StepResults

FACET_VALUES = 12


def count(results: StepResults, topics: Sequence[ReportTopic]) -> Counts:
    return Counts(
        rows=results.source.rows,
        comments=len(results.comments),
        people=results.source.people,
        claims=len(results.sorted.groups),
        extracted=results.claims.claims,
        quotes=sum(len(group.members) for group in results.sorted.groups),
        topics=sum(topic.id != OTHER for topic in topics),
        subtopics=sum(len(topic.subtopics) for topic in topics if topic.id != OTHER),
        voters=results.opinions.voters,
        votes=results.opinions.votes,
    )


def header_figures(counts: Counts) -> tuple[str, ...]:
    """The names of the figures that a report begins with. Voters only where they are known."""
    if not counts.votes:
        return ("people", "comments", "claims", "topics", "subtopics")
    voters = ("voters",) if counts.voters else ()
    return ("people", *voters, "votes", "comments", "claims", "topics")


def measure_coverage(results: StepResults) -> Coverage:
    total = len(results.comments) or 1
    placed = {
        placement.comment
        for placement in results.clustering.placements
        if placement.subtopic != OTHER
    }
    speaking = {member.comment for group in results.sorted.groups for member in group.members}
    return Coverage(
        round(len(placed) / total, 4), round(len(speaking) / total, 4), round(_quoted(results), 4)
    )


def _quoted(results: StepResults) -> float:
    """The share of all characters that is inside a quote; what is quoted twice counts once."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for group in results.sorted.groups:
        for claim in group.members:
            spans.setdefault(claim.comment, []).append((claim.start, claim.end))
    total = sum(len(comment.text) for comment in results.comments.values())
    return sum(map(_covered, spans.values())) / total if total else 0.0


def _covered(spans: list[tuple[int, int]]) -> int:
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def facets(comments: Iterable[Comment]) -> tuple[Facet, ...]:
    counts_by_facet: dict[str, Counter[str]] = {}
    for comment in comments:
        for name, value in comment.facets.items():
            if value:
                counts_by_facet.setdefault(name, Counter())[value] += 1
    return tuple(
        Facet(
            name,
            tuple(
                sorted(value_counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACET_VALUES]
            ),
        )
        for name, value_counts in counts_by_facet.items()
    )
