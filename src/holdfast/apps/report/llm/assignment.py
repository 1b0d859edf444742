"""Where comments belong: each in one to three subtopics of a taxonomy, or in "other"; several of
them share a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.apps.report.llm.answers import AssignmentsAnswer
from holdfast.apps.report.llm.batching import Batcher, BatchItem, BatchSize
from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.llm.proposed_topics import fingerprint
from holdfast.apps.report.llm.questions import (
    compact_json,
    data_block,
    system_prompt,
    taxonomy_block,
)
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.taxonomy import OTHER, Topic
from holdfast.model.tokens import estimate_tokens
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

COMMENTS_PER_CALL = BatchSize(items=40, tokens=6_000)
MOST_SUBTOPICS = 3
AROUND = 8
"""Tokens that the JSON around a comment takes."""

SubtopicIds = tuple[str, ...]
Assignments = dict[str, SubtopicIds]
"""Where comments are: fingerprint of the text → ids of subtopics."""


@dataclass(frozen=True, slots=True)
class AssignmentKey:
    """What comments must have in common to share a call."""

    tenant: str
    run: str
    system: str
    budget: float | None
    fresh: bool
    subtopics: frozenset[str]


class AssignmentHandler:
    """Asks where comments belong, several in one call. The answer is the ids that exist, at most
    three."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def recall(
        self, batch_key: AssignmentKey, item: BatchItem, ctx: Context
    ) -> SubtopicIds | None:
        return None  # where comments were assigned is kept with the taxonomy

    async def ask(
        self, batch_key: AssignmentKey, items: Sequence[BatchItem], ctx: Context
    ) -> list[SubtopicIds | None]:
        listed = [{"id": str(number), **item.body} for number, item in enumerate(items, 1)]
        question = Question(
            batch_key.system,
            data_block({"comments": listed}),
            "assignment",
            max_output=200 + 40 * len(items),
        )
        answer = await self._model.ask(
            question, AssignmentsAnswer, ctx, budget=batch_key.budget, fresh=batch_key.fresh
        )
        # Reversed: of two assignments of one comment the first counts.
        assigned = {comment.id.strip(): comment.subtopics for comment in reversed(answer.comments)}
        return [
            _valid(assigned.get(str(number), ()), batch_key.subtopics)
            for number in range(1, len(items) + 1)
        ]


class Assigner:
    """Takes one comment at a time from many callers, and asks about several in one call."""

    def __init__(self, model: LanguageModel) -> None:
        self._batcher = Batcher(AssignmentHandler(model), COMMENTS_PER_CALL, model.in_flight)
        self._concurrency = COMMENTS_PER_CALL.callers_for(model.in_flight)

    async def assign(
        self,
        fingerprints: Sequence[str],
        texts: dict[str, str],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
        checkpoint_prefix: str = "",
    ) -> Assignments:
        """Ask about comments. What the model refuses, leaves unanswered or answers with unknown ids
        is "other"."""
        if not topics:
            return dict.fromkeys(fingerprints, (OTHER,))
        known = frozenset(subtopic.id for topic in topics for subtopic in topic.subtopics)
        batch_key = AssignmentKey(
            ctx.tenant,
            ctx.run_id,
            system_prompt(brief, "assignment", taxonomy_block(topics)),
            brief.budget,
            brief.fresh,
            known | {OTHER},
        )

        async def assign(fingerprint: str, ctx: Context) -> SubtopicIds:
            item = _batch_item(texts[fingerprint])
            try:
                return await self._batcher.ask(batch_key, item, ctx) or (OTHER,)
            except (Declined, TooLong):
                return (OTHER,)

        assigned = await ctx.map(
            assign,
            fingerprints,
            key=lambda fingerprint: checkpoint_prefix + fingerprint,
            concurrency=self._concurrency,
        )
        return dict(zip(fingerprints, assigned, strict=True))


def _batch_item(text: str) -> BatchItem:
    return BatchItem(
        fingerprint(text),
        {"text": text},
        estimate_tokens(compact_json(text)) + AROUND,
        alone=looks_like_injection(text),
    )


def _valid(ids: Iterable[str], known: frozenset[str]) -> SubtopicIds | None:
    """The ids that exist; "other" only where nothing else is."""
    existing = tuple(dict.fromkeys(id.strip() for id in ids if id.strip() in known))
    named = tuple(id for id in existing if id != OTHER)[:MOST_SUBTOPICS]
    return named or existing or None
