"""How two reports differ: which topics and claims came, went or changed, and on how many people
they rest.

Names and ids change when comments are added or another model writes them, so topics and claims are
matched by the comments they quote. A comment is the same when its words are; the same words given
twice are two comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

from holdfast.apps.report.model.document import Counts, Coverage, Report, ReportClaim, ReportTopic
from holdfast.apps.report.outputs.comparison_text import describe
from holdfast.apps.report.outputs.differences import Change, Changes, Comparison, Figure, T
from holdfast.apps.report.outputs.matching import Evidence, matched
from holdfast.apps.report.outputs.traversal import claim_positions, quotes_of

__all__ = ["Comparison", "compare", "describe"]


def compare(before: Report, after: Report) -> Comparison:
    """What is different in `after`."""
    old, new = _comments(before), _comments(after)
    return Comparison(
        figures=tuple(_figures(before, after)),
        comments_added=_only_in(new, old),
        comments_removed=_only_in(old, new),
        topics=_changes(
            [(topic, _evidence(topic, old)) for topic in before.topics],
            [(topic, _evidence(topic, new)) for topic in after.topics],
        ),
        claims=_changes(
            [
                (position.claim, _evidence(position.claim, old))
                for position in claim_positions(before)
            ],
            [
                (position.claim, _evidence(position.claim, new))
                for position in claim_positions(after)
            ],
        ),
    )


def _figures(before: Report, after: Report) -> Iterator[Figure]:
    for kind, old, new in (
        (Counts, before.counts, after.counts),
        (Coverage, before.coverage, after.coverage),
    ):
        for field in fields(kind):
            was, now = getattr(old, field.name), getattr(new, field.name)
            if was != now:
                yield Figure(field.name, was, now)


def _comments(report: Report) -> dict[str, tuple[str, int]]:
    """Comment id → its words, and which of those with the same words it is."""
    counts: Counter[str] = Counter()
    words_by_id = {}
    for comment in report.comments:
        counts[comment.text] += 1
        words_by_id[comment.id] = (comment.text, counts[comment.text])
    return words_by_id


def _only_in(
    comments: dict[str, tuple[str, int]], other_comments: dict[str, tuple[str, int]]
) -> tuple[str, ...]:
    known = set(other_comments.values())
    return tuple(id for id, words in comments.items() if words not in known)


def _evidence(
    topic_or_claim: ReportTopic | ReportClaim, comments: dict[str, tuple[str, int]]
) -> Evidence:
    quotes = (
        topic_or_claim.quotes
        if isinstance(topic_or_claim, ReportClaim)
        else quotes_of(topic_or_claim)
    )
    return frozenset(comments[quote.comment] for quote in quotes if quote.comment in comments)


def _changes(
    before: Sequence[tuple[T, Evidence]], after: Sequence[tuple[T, Evidence]]
) -> Changes[T]:
    pairs = matched(before, after)
    matched_before, matched_after = {old for old, _ in pairs}, {new for _, new in pairs}
    both = [
        Change(before[old][0], after[new][0])
        for old, new in sorted(pairs, key=lambda pair: pair[1])
    ]
    changed = [change for change in both if change.renamed or change.people]
    return Changes(
        added=tuple(
            topic_or_claim
            for index, (topic_or_claim, _) in enumerate(after)
            if index not in matched_after
        ),
        removed=tuple(
            topic_or_claim
            for index, (topic_or_claim, _) in enumerate(before)
            if index not in matched_before
        ),
        changed=tuple(changed),
        same=len(both) - len(changed),
    )
