"""The audit log of Talk to the City (v1.0): what became of every comment, and which claims were
merged.

Rows that were not analysed are rejections of its two filters: the one for content (too long,
moderated, unreadable, over the limit) and the one for meaning (empty, no words, said twice by the
same person)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.apps.report.model.comment import Comment, Fate, Row
from holdfast.apps.report.model.document import Report, ReportClaim
from holdfast.apps.report.outputs.traversal import claim_positions

VERSION = "1.0"
PREVIEW = 200
MEANINGLESS = (Fate.EMPTY, Fate.JUNK, Fate.DUPLICATE)

Json = dict[str, Any]


def audit_log(report: Report) -> Json:
    """Entries in the order of the steps, and their sums."""
    claims, failed = _claims_by_comment(report), dict(report.method.failed)
    entries = [
        *map(_received, report.comments),
        *map(_rejected, report.left_out),
        *(
            _extracted(comment, claims.get(comment.id, []), failed.get(comment.id))
            for comment in report.comments
        ),
        *_merged(report),
    ]
    return {
        "version": VERSION,
        "reportId": report.id,
        "createdAt": report.made.at,
        "inputCommentCount": report.counts.rows,
        "finalQuoteCount": report.counts.quotes,
        "modelName": report.method.analyst,
        "entries": [{**entry, "timestamp": report.made.at} for entry in entries],
        "summary": _summary(report, claims),
    }


def _claims_by_comment(report: Report) -> dict[str, list[tuple[str, str]]]:
    """Comment → the ids of the claims extracted from it, each with where it stands."""
    claims: dict[str, list[tuple[str, str]]] = {}
    for position in claim_positions(report):
        path = f"{position.topic.name} → {position.subtopic.name}"
        for quote in position.claim.quotes:
            claims.setdefault(quote.comment, []).append((quote.claim, path))
    return claims


def _received(comment: Comment) -> Json:
    return {**_about(comment, "input", "received"), "commentLength": len(comment.text)}


def _rejected(row: Row) -> Json:
    return {
        "entryId": f"row:{row.row}",
        "entryType": "comment",
        "commentId": row.id,
        "textPreview": row.text[:PREVIEW],
        "step": "meaningfulness_filter" if row.fate in MEANINGLESS else "sanitization_filter",
        "action": "rejected",
        "reason": row.reason or str(row.fate),
    }


def _extracted(comment: Comment, claims: list[tuple[str, str]], failed: str | None) -> Json:
    entry = _about(comment, "claims_extraction", "accepted" if claims else "rejected")
    if not claims:
        return {
            **entry,
            "reason": f"could not be analysed: {failed}" if failed else "no claim was found in it",
        }
    paths = list(dict.fromkeys(path for _, path in claims))
    return {
        **entry,
        "claimsExtracted": len(claims),
        "claimIds": [id for id, _ in claims],
        "topicAssignments": paths,
    }


def _about(comment: Comment, step: str, action: str) -> Json:
    return {
        "entryId": f"{step}:{comment.id}",
        "entryType": "comment",
        "commentId": comment.id,
        "textPreview": comment.text[:PREVIEW],
        "interview": comment.speaker,
        "step": step,
        "action": action,
    }


def _merged(report: Report) -> Iterator[Json]:
    for position in claim_positions(report):
        if len(position.claim.quotes) > 1:
            yield _merge(position.claim)


def _merge(claim: ReportClaim) -> Json:
    merged = [quote.claim for quote in claim.quotes]
    return {
        "entryId": f"deduplication:{claim.id}",
        "entryType": "claim",
        "textPreview": claim.statement[:PREVIEW],
        "step": "deduplication",
        "action": "deduplicated",
        "reason": f"merged from {len(merged)} claims that say the same",
        "primaryClaimId": claim.id,
        "mergedClaimIds": merged,
    }


def _summary(report: Report, claims: dict[str, list[tuple[str, str]]]) -> Json:
    """From the funnel, which is complete even where the document does not list every row that was
    left out."""
    lost = {
        loss.reason: loss.count
        for stage in report.funnel
        if stage.name == "comments"
        for loss in stage.lost
    }
    meaningless = sum(lost.get(fate, 0) for fate in MEANINGLESS)
    counts = report.counts
    return {
        "rejectedBySanitization": counts.rows - counts.comments - meaningless,
        "rejectedByMeaningfulness": meaningless,
        "rejectedByClaimsExtraction": counts.comments - len(claims),
        "deduplicated": counts.quotes - counts.claims,
        "accepted": len(claims),
    }
