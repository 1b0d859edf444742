"""Topics over all comments: samples are read, proposals merged, and every comment is assigned.

    samples ─► a proposal for each ─► one taxonomy ─► every comment in one to three subtopics, or in
    "other"
                                          ▲                     │
         an earlier report on ────────────┘      too many in "other": more topics are
         (nearly) the same comments              proposed, and those are assigned again

All of it is kept on the way: each proposal and each assignment is a checkpoint of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from holdfast.apps.report.llm.answers import TopicsAnswer
from holdfast.apps.report.llm.assignment import Assigner, Assignments
from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.llm.proposed_topics import (
    extend_taxonomy,
    fingerprint,
    make_taxonomy,
    sample_batches,
    shorten_proposal,
    topic_instructions,
)
from holdfast.apps.report.llm.questions import data_block, digest, system_prompt, taxonomy_block
from holdfast.apps.report.llm.taxonomy_cache import KnownTaxonomy, TaxonomyCache
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Topic
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

TOO_MANY = 0.2
"""The share of newly assigned comments in "other" from which on more topics are looked for."""
A_FEW = 5
MOST_PROPOSED = 60


class Clusterer:
    """Finds topics, and assigns comments to them."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._cache = TaxonomyCache(model)
        self._assigner = Assigner(model)

    async def cluster(self, comments: Sequence[Comment], brief: Brief, ctx: Context) -> Clustering:
        if not comments:
            return Clustering((), ())
        texts = {fingerprint(comment.text): comment.text for comment in comments}
        cache_key = self._cache_key(brief)
        known = await ctx.step("earlier", self._find_cached(texts, brief), cache_key)
        topics, notes = known.topics, _notes_about_cached(known, texts)
        if not topics:
            topics, notes = await self._discover(texts, brief, ctx)
        assigned = known.among(texts)
        new = [text for text in texts if text not in assigned]
        assigned |= await self._assigner.assign(new, texts, topics, brief, ctx)
        if _too_many_unassigned(new, assigned, texts):
            topics, assigned = await self._extend(topics, assigned, texts, brief, ctx)
        if new:
            await self._cache.keep(cache_key, KnownTaxonomy(topics, assigned), ctx)
        return Clustering(topics, tuple(_placements(comments, assigned)), notes=tuple(notes))

    def _cache_key(self, brief: Brief) -> str:
        """All that decides the topics, apart from the comments."""
        tasks = ("clustering", "merging", "extending", "assignment")
        return digest(
            self._model.name,
            topic_instructions(brief),
            *(system_prompt(brief, task) for task in tasks),
        )

    def _find_cached(
        self, texts: dict[str, str], brief: Brief
    ) -> Callable[..., Coroutine[Any, Any, KnownTaxonomy]]:
        async def find(cache_key: str, ctx: Context) -> KnownTaxonomy:
            cached = None if brief.fresh else await self._cache.find(cache_key, texts, ctx)
            return KnownTaxonomy(cached.topics, cached.among(texts)) if cached else KnownTaxonomy()

        return find

    # --- topics -----------------------------------------------------------------------------------

    async def _discover(
        self, texts: dict[str, str], brief: Brief, ctx: Context
    ) -> tuple[tuple[Topic, ...], list[str]]:
        batches = sample_batches(texts.values())
        read = sum(map(len, batches))

        async def propose(batch: int, ctx: Context) -> TopicsAnswer:
            return await self._propose(batches[batch], brief, ctx)

        async def merge(ctx: Context) -> TopicsAnswer:
            return await self._merge(proposals, batches, brief, ctx)

        proposals: list[TopicsAnswer] = await ctx.map(
            propose,
            list(range(len(batches))),
            key=lambda batch: f"sample {batch + 1}",
            concurrency=len(batches) or 1,
        )
        agreed = proposals[0] if len(proposals) == 1 else await ctx.step("merging", merge)
        notes = [
            f"Topics were proposed from {read} of {len(texts)} different comments, chosen by their "
            "content."
        ]
        return make_taxonomy(agreed.topics, brief), notes if read < len(texts) else []

    async def _propose(self, batch: Sequence[str], brief: Brief, ctx: Context) -> TopicsAnswer:
        """Topics for a sample. What a model refuses to read as a whole it is given in halves, but
        not to the last."""
        try:
            return await self._ask_for_topics(
                "clustering", {"comments": batch}, topic_instructions(brief), brief, ctx
            )
        except (Declined, TooLong):
            if len(batch) < A_FEW:
                return TopicsAnswer(topics=[])
            halves = [await self._propose(half, brief, ctx) for half in (batch[::2], batch[1::2])]
            return _interleaved(halves)

    async def _merge(
        self,
        proposals: Sequence[TopicsAnswer],
        batches: Sequence[Sequence[str]],
        brief: Brief,
        ctx: Context,
    ) -> TopicsAnswer:
        listed = [
            shorten_proposal(proposal.topics, len(batch))
            for proposal, batch in zip(proposals, batches, strict=True)
        ]
        try:
            return await self._ask_for_topics(
                "merging", {"proposals": listed}, topic_instructions(brief), brief, ctx
            )
        except (Declined, TooLong):
            return _interleaved(proposals)

    async def _extend(
        self,
        topics: tuple[Topic, ...],
        assigned: Assignments,
        texts: dict[str, str],
        brief: Brief,
        ctx: Context,
    ) -> tuple[tuple[Topic, ...], Assignments]:
        """Look for topics in what is in "other", and assign that once more."""
        other = [text for text, subtopics in assigned.items() if subtopics == (OTHER,)]
        batches = sample_batches(
            texts[text] for text in other if not looks_like_injection(texts[text])
        )[:1]

        async def extend(ctx: Context) -> TopicsAnswer:
            try:
                return await self._ask_for_topics(
                    "extending", {"comments": batches[0]}, taxonomy_block(topics), brief, ctx
                )
            except (Declined, TooLong):
                return TopicsAnswer(topics=[])

        proposal = await ctx.step("extending", extend)
        extended = extend_taxonomy(topics, proposal.topics, brief)
        if extended == topics:
            return topics, assigned
        again = await self._assigner.assign(
            other, texts, extended, brief, ctx, checkpoint_prefix="again "
        )
        return extended, assigned | again

    async def _ask_for_topics(
        self, task: str, payload: dict[str, Any], instructions: str, brief: Brief, ctx: Context
    ) -> TopicsAnswer:
        system = system_prompt(brief, task, instructions)
        question = Question(system, data_block(payload), task, max_output=6_000)
        return await self._model.ask(
            question,
            TopicsAnswer,
            ctx,
            budget=brief.budget,
            fresh=brief.fresh,
            check=None if task == "extending" else _has_topics,
        )


def _has_topics(answer: TopicsAnswer) -> str | None:
    """An answer without topics is a failure, not a success."""
    named = any(any(map(str.isalnum, topic.name)) for topic in answer.topics)
    return None if named else "there is no topic in the answer; propose at least one, with a name"


def _interleaved(proposals: Sequence[TopicsAnswer]) -> TopicsAnswer:
    """All proposals, one topic of each in turn: topics of the same name become one later."""
    turns = zip_longest(*(proposal.topics for proposal in proposals))
    return TopicsAnswer(
        topics=[topic for turn in turns for topic in turn if topic is not None][:MOST_PROPOSED]
    )


def _too_many_unassigned(new: Sequence[str], assigned: Assignments, texts: dict[str, str]) -> bool:
    counted = [text for text in new if not looks_like_injection(texts[text])]
    other = sum(assigned[text] == (OTHER,) for text in counted)
    return other >= max(A_FEW, TOO_MANY * len(counted))


def _placements(comments: Sequence[Comment], assigned: Assignments) -> Iterable[Placement]:
    for comment in comments:
        for subtopic in assigned[fingerprint(comment.text)]:
            yield Placement(comment.id, subtopic, 0, len(comment.text))


def _notes_about_cached(known: KnownTaxonomy, texts: dict[str, str]) -> list[str]:
    count = len(known.among(texts))
    if not known.topics or count == len(texts):
        return []
    return [
        f"Topics were taken over from an earlier report, which had {count} of these {len(texts)} "
        "different comments."
    ]
