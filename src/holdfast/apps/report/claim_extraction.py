"""The claims of one comment: proposed by the analyst, checked, and asked for again where a quote
was not found; and the sum over all comments."""

from __future__ import annotations

from holdfast.apps.report.checking import check_draft, without_repeats
from holdfast.apps.report.model.claim import (
    ClaimDraft,
    Claims,
    DroppedDraft,
    DropReason,
    Extraction,
)
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import Placement, Topic
from holdfast.apps.report.step_inputs import StepInputs
from holdfast.ports.context import Context, Failure


async def extract_claims(
    inputs: StepInputs,
    comment: Comment,
    placements: list[Placement],
    topics: tuple[Topic, ...],
    ctx: Context,
) -> Extraction:
    drafts = await inputs.analyst.extract(comment, placements, topics, inputs.brief, ctx)
    allowed = [placement.subtopic for placement in placements]
    checked, repaired = [], 0
    for draft in drafts:
        outcome = check_draft(draft, comment, allowed)
        if isinstance(outcome, DroppedDraft) and outcome.reason == DropReason.QUOTE_NOT_FOUND:
            quote = await inputs.analyst.requote(comment, draft, inputs.brief, ctx)
            outcome = check_draft(
                ClaimDraft(draft.statement, quote or draft.quote, draft.subtopic), comment, allowed
            )
            repaired += not isinstance(outcome, DroppedDraft)
        checked.append(outcome)
    claims, dropped = without_repeats(checked)
    return Extraction(comment.id, tuple(claims), tuple(dropped), repaired)


def tally(outcomes: dict[str, Extraction | Failure], order: list[str]) -> Claims:
    done = [outcome for id in order if isinstance(outcome := outcomes[id], Extraction)]
    return Claims(
        comments=len(order),
        claims=sum(len(extraction.claims) for extraction in done),
        repaired=sum(extraction.repaired for extraction in done),
        lost=tuple(draft for extraction in done for draft in extraction.lost),
        silent=tuple(extraction.comment for extraction in done if not extraction.claims),
        failed={
            id: str(outcome.error) for id in order if isinstance(outcome := outcomes[id], Failure)
        },
    )
