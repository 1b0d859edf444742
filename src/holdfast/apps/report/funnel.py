"""The funnel: how many rows, comments and claims were left at every stage, and why the others were
not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from holdfast.apps.report.model.claim import Claims
from holdfast.apps.report.model.comment import Comment, CommentSet, Fate, Row
from holdfast.apps.report.model.document import LossExample, LossReason, Stage

EXAMPLES = 3
LENGTH = 120

NO_CLAIM = "no claim found"
FAILED = "could not be analysed"
MERGED = "merged with the same claim"


def funnel(
    source: CommentSet,
    comments: Mapping[str, Comment],
    left_out: Sequence[Row],
    claims: Claims,
    groups: int,
) -> tuple[Stage, ...]:
    """Rows → comments → comments that say something → drafts → claims with a verified quote →
    claims of the report."""
    speaking = len(comments) - len(claims.silent) - len(claims.failed)
    return (
        Stage("rows", source.rows),
        Stage("comments", len(comments), _fates(source, left_out)),
        Stage("speaking", speaking, _unspoken(claims, comments)),
        Stage("drafts", claims.claims + len(claims.lost)),
        Stage("extracted", claims.claims, _dropped(claims)),
        Stage("claims", groups, _counted(MERGED, claims.claims - groups)),
    )


def _fates(source: CommentSet, left_out: Sequence[Row]) -> tuple[LossReason, ...]:
    lost = [(fate, count) for fate, count in source.fates.items() if fate != Fate.KEPT and count]
    return tuple(
        LossReason(
            fate,
            count,
            _examples(
                (f"row {row.row}", row.text or row.reason) for row in left_out if row.fate == fate
            ),
        )
        for fate, count in lost
    )


def _unspoken(claims: Claims, comments: Mapping[str, Comment]) -> tuple[LossReason, ...]:
    silent = _examples((f"row {comments[id].row}", comments[id].text) for id in claims.silent)
    failed = _examples((f"row {comments[id].row}", why) for id, why in claims.failed.items())
    return (
        *_counted(NO_CLAIM, len(claims.silent), silent),
        *_counted(FAILED, len(claims.failed), failed),
    )


def _dropped(claims: Claims) -> tuple[LossReason, ...]:
    counts = Counter(str(draft.reason) for draft in claims.lost)
    return tuple(
        LossReason(
            reason,
            count,
            _examples(
                (f"comment {draft.comment}", draft.quote or draft.statement)
                for draft in claims.lost
                if draft.reason == reason
            ),
        )
        for reason, count in sorted(counts.items())
    )


def _counted(
    reason: str, count: int, examples: tuple[LossExample, ...] = ()
) -> tuple[LossReason, ...]:
    return (LossReason(reason, count, examples),) if count else ()


def _examples(cases: Iterable[tuple[str, str]]) -> tuple[LossExample, ...]:
    examples: list[LossExample] = []
    for position, text in cases:
        examples.append(LossExample(position, text[:LENGTH] + ("…" if len(text) > LENGTH else "")))
        if len(examples) == EXAMPLES:
            break
    return tuple(examples)
