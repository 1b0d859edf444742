"""The claims that comments make, and quotes that were not found. Several comments share a call."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from holdfast.apps.report.llm.answers import ExtractionAnswer, QuotesAnswer
from holdfast.apps.report.llm.batching import Batcher, BatchItem, BatchSize
from holdfast.apps.report.llm.comment_handlers import (
    STATEMENT,
    CachedClaim,
    ExtractionHandler,
    ExtractionKey,
    RequoteHandler,
)
from holdfast.apps.report.llm.injection import as_quotation, looks_like_injection
from holdfast.apps.report.llm.questions import compact_json, digest, system_prompt, taxonomy_block
from holdfast.apps.report.llm.text_cleaning import truncate
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimDraft
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Placement, Subtopic, Topic
from holdfast.apps.report.voting import is_voted_whole
from holdfast.model.tokens import estimate_tokens
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, TooLong

COMMENTS_PER_CALL = BatchSize(items=10, tokens=3_000)
LONG = 1_500
"""Tokens of a comment that is enough for a call of its own."""
AROUND = 12
"""Tokens that the JSON around a comment takes."""


class ClaimExtractor:
    """Takes one comment at a time from many callers, and reads several of them in one call."""

    def __init__(self, model: LanguageModel) -> None:
        extracting = ExtractionHandler(model, "extraction", ExtractionAnswer, list[CachedClaim])
        self._claims = Batcher(extracting, COMMENTS_PER_CALL, model.in_flight)
        self._last: tuple[tuple[object, ...], ExtractionKey] | None = None
        requoting = RequoteHandler(model, "requote", QuotesAnswer, str)
        self._quotes = Batcher(requoting, COMMENTS_PER_CALL, model.in_flight)

    async def extract(
        self,
        comment: Comment,
        placements: Sequence[Placement],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
    ) -> list[ClaimDraft]:
        ids = list(dict.fromkeys(placement.subtopic for placement in placements)) or [OTHER]
        item = _to_extract(comment, ids, topics)
        claims = await self._claims.ask(self._batch_key(topics, brief, ctx), item, ctx)
        drafts = [
            ClaimDraft(claim.statement, claim.quote, ids[min(claim.subtopic, len(ids) - 1)])
            for claim in claims or ()
        ]
        return _as_quotations(drafts) if looks_like_injection(comment.text) else drafts

    def _batch_key(self, topics: Sequence[Topic], brief: Brief, ctx: Context) -> ExtractionKey:
        """Thousands of comments in a row share theirs: writing it anew for each takes longer than
        all the rest."""
        made_of = (topics, brief, ctx.run_id, ctx.step_name)
        if self._last is None or not all(map(is_, self._last[0], made_of)):
            self._last = made_of, _batch_key(brief, "extraction", ctx, taxonomy_block(topics))
        return self._last[1]

    async def requote(self, comment: Comment, draft: ClaimDraft, brief: Brief, ctx: Context) -> str:
        if looks_like_injection(comment.text):
            return ""
        body = {"text": comment.text, "claim": draft.statement, "quote": draft.quote}
        item = _batch_item(body, comment.text)
        try:
            return await self._quotes.ask(_batch_key(brief, "requote", ctx), item, ctx) or ""
        except (Declined, TooLong):
            return ""  # one claim less, and its comment is not lost with it


def _batch_key(brief: Brief, task: str, ctx: Context, *more: str) -> ExtractionKey:
    ground = digest(system_prompt(brief, task))
    return ExtractionKey(
        ctx.tenant,
        ctx.run_id,
        ctx.step_name,
        system_prompt(brief, task, *more),
        ground,
        brief.budget,
        brief.fresh,
    )


def _to_extract(comment: Comment, ids: Sequence[str], topics: Sequence[Topic]) -> BatchItem:
    """What is asked depends on the comment's words, on whether people voted on them and on what its
    subtopics are about, not on who says it or where."""
    voted = {"voted": True} if is_voted_whole(comment) else {}
    known = {subtopic.id: (topic, subtopic) for topic in topics for subtopic in topic.subtopics}
    other = Topic(OTHER, OTHER, "", (Subtopic(OTHER, OTHER),))
    about = [known.get(id, (other, other.subtopics[0])) for id in ids]
    described = [[topic.name, subtopic.name, subtopic.description] for topic, subtopic in about]
    identity = digest(compact_json(described), comment.text, *voted)
    body = {"subtopics": list(ids), **voted, "text": comment.text}
    return _batch_item(body, comment.text, identity=identity, affinity=about[0][0].id)


def _batch_item(
    body: dict[str, Any], text: str, *, identity: str = "", affinity: str = ""
) -> BatchItem:
    tokens = estimate_tokens(compact_json(body)) + AROUND
    identity = identity or digest(compact_json(body))
    return BatchItem(
        identity, body, tokens, affinity, alone=tokens > LONG or looks_like_injection(text)
    )


def _as_quotations(drafts: Sequence[ClaimDraft]) -> list[ClaimDraft]:
    """A comment that seems to steer the model is given no words but its own: its statements are its
    quotes.

    If those are not in the comment, they are not looked for again, and the claim is lost.
    """
    return [
        ClaimDraft(as_quotation(truncate(draft.quote, STATEMENT)), draft.quote, draft.subtopic)
        for draft in drafts
    ]
