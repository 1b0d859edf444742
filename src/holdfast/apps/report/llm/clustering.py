"""Topics over all comments: samples are read, proposals merged, and then every comment is placed.

    samples ─► a proposal for each ─► one taxonomy ─► every comment in one to three subtopics, or in
    "other"
                                          ▲                     │
         an earlier report on ────────────┘      too many in "other": more topics are
         (nearly) the same comments              proposed, and those are placed again

All of it is kept on the way: each proposal and each comment's place is a checkpoint of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from holdfast.apps.report.llm.answers import AssignmentsAnswer, TopicsAnswer
from holdfast.apps.report.llm.batching import Batcher, BatchItem, BatchSize
from holdfast.apps.report.llm.injection import is_suspicious
from holdfast.apps.report.llm.proposed_topics import (
    extended,
    fingerprint,
    proposal,
    samples,
    taxonomy,
    wishes,
)
from holdfast.apps.report.llm.questions import compact, data, digest, system, topics_part
from holdfast.apps.report.llm.taxonomy_cache import KnownTaxonomy, TaxonomyCache
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Topic
from holdfast.model.tokens import estimate_tokens
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

COMMENTS_PER_CALL = BatchSize(pieces=40, tokens=6_000)
MOST_PLACES = 3
AROUND = 8
"""Tokens that the JSON around a comment takes."""
TOO_MANY = 0.2
"""The share of newly placed comments in "other" from which on more topics are looked for."""
A_FEW = 5
MOST_PROPOSED = 60

Places = dict[str, tuple[str, ...]]
"""Where comments are: fingerprint of the text → ids of subtopics."""


@dataclass(frozen=True, slots=True)
class AssignmentKey:
    """What comments must have in common to be placed in one call."""

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
        self, pile: AssignmentKey, piece: BatchItem, ctx: Context
    ) -> tuple[str, ...] | None:
        return None  # where comments were placed is kept with the taxonomy

    async def ask(
        self, pile: AssignmentKey, pieces: Sequence[BatchItem], ctx: Context
    ) -> list[tuple[str, ...] | None]:
        listed = [{"id": str(number), **piece.body} for number, piece in enumerate(pieces, 1)]
        question = Question(
            pile.system, data({"comments": listed}), "assignment", max_output=200 + 40 * len(pieces)
        )
        answer = await self._model.ask(
            question, AssignmentsAnswer, ctx, budget=pile.budget, fresh=pile.fresh
        )
        places = {
            each.id.strip(): each.subtopics for each in reversed(answer.comments)
        }  # the first one counts
        return [
            _valid(places.get(str(number), ()), pile.subtopics)
            for number in range(1, len(pieces) + 1)
        ]


class Clusterer:
    """Finds topics, and places comments."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._earlier = TaxonomyCache(model)
        self._assigning = Batcher(AssignmentHandler(model), COMMENTS_PER_CALL, model.in_flight)
        self._at_once = COMMENTS_PER_CALL.to_fill(model.in_flight)

    async def cluster(self, comments: Sequence[Comment], brief: Brief, ctx: Context) -> Clustering:
        if not comments:
            return Clustering((), ())
        texts = {fingerprint(comment.text): comment.text for comment in comments}
        wanted = self._wanted(brief)
        known = await ctx.step("earlier", self._look_back(wanted, texts, brief), wanted)
        topics, notes = known.topics, _taken_over(known, texts)
        if not topics:
            topics, notes = await self._discover(texts, brief, ctx)
        places = known.among(texts)
        new = [each for each in texts if each not in places]
        places |= await self._place(new, texts, topics, brief, ctx)
        if _too_many_left(new, places, texts):
            topics, places = await self._extend(topics, places, texts, brief, ctx)
        if new:
            await self._earlier.keep(wanted, KnownTaxonomy(topics, places), ctx)
        return Clustering(topics, tuple(_placements(comments, places)), notes=tuple(notes))

    def _wanted(self, brief: Brief) -> str:
        """All that decides the topics, apart from the comments."""
        tasks = ("clustering", "merging", "extending", "assignment")
        return digest(self._model.name, wishes(brief), *(system(brief, task) for task in tasks))

    def _look_back(
        self, wanted: str, texts: dict[str, str], brief: Brief
    ) -> Callable[..., Coroutine[Any, Any, KnownTaxonomy]]:
        async def earlier(wanted: str, ctx: Context) -> KnownTaxonomy:
            found = None if brief.fresh else await self._earlier.find(wanted, texts, ctx)
            return KnownTaxonomy(found.topics, found.among(texts)) if found else KnownTaxonomy()

        return earlier

    # --- topics -----------------------------------------------------------------------------------

    async def _discover(
        self, texts: dict[str, str], brief: Brief, ctx: Context
    ) -> tuple[tuple[Topic, ...], list[str]]:
        batches = samples(texts.values())
        read = sum(map(len, batches))

        async def propose(batch: int, ctx: Context) -> TopicsAnswer:
            return await self._propose(batches[batch], brief, ctx)

        async def merge(ctx: Context) -> TopicsAnswer:
            listed = [
                proposal(each.topics, len(batch))
                for each, batch in zip(proposed, batches, strict=True)
            ]
            try:
                return await self._topics(
                    "merging", data({"proposals": listed}), brief, ctx, wishes(brief)
                )
            except (Declined, TooLong):
                return _put_together(proposed)

        proposed: list[TopicsAnswer] = await ctx.map(
            propose,
            list(range(len(batches))),
            key=lambda batch: f"sample {batch + 1}",
            concurrency=len(batches) or 1,
        )
        agreed = proposed[0] if len(proposed) == 1 else await ctx.step("merging", merge)
        notes = [
            f"Topics were proposed from {read} of {len(texts)} different comments, chosen by their "
            "content."
        ]
        return taxonomy(agreed.topics, brief), notes if read < len(texts) else []

    async def _propose(self, batch: Sequence[str], brief: Brief, ctx: Context) -> TopicsAnswer:
        """Topics for a sample. What a model refuses to read as a whole it is given in halves, but
        not to the last."""
        try:
            return await self._topics(
                "clustering", data({"comments": batch}), brief, ctx, wishes(brief)
            )
        except (Declined, TooLong):
            if len(batch) < A_FEW:
                return TopicsAnswer(topics=[])
            halves = [await self._propose(half, brief, ctx) for half in (batch[::2], batch[1::2])]
            return _put_together(halves)

    async def _topics(
        self, task: str, text: str, brief: Brief, ctx: Context, *more: str
    ) -> TopicsAnswer:
        question = Question(system(brief, task, *more), text, task, max_output=6_000)
        return await self._model.ask(
            question, TopicsAnswer, ctx, budget=brief.budget, fresh=brief.fresh
        )

    # --- places -----------------------------------------------------------------------------------

    async def _place(
        self,
        which: Sequence[str],
        texts: dict[str, str],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
        again: str = "",
    ) -> Places:
        """Ask about comments. What the model refuses, leaves unanswered or answers with unknown ids
        is "other"."""
        if not topics:
            return dict.fromkeys(which, (OTHER,))
        ids = frozenset(one.id for topic in topics for one in topic.subtopics) | {OTHER}
        instructions = system(brief, "assignment", topics_part(topics))
        pile = AssignmentKey(ctx.tenant, ctx.run_id, instructions, brief.budget, brief.fresh, ids)

        async def place(which: str, ctx: Context) -> tuple[str, ...]:
            try:
                return await self._assigning.ask(pile, _piece(texts[which]), ctx) or (OTHER,)
            except (Declined, TooLong):
                return (OTHER,)

        found = await ctx.map(
            place, which, key=lambda each: again + each, concurrency=self._at_once
        )
        return dict(zip(which, found, strict=True))

    async def _extend(
        self,
        topics: tuple[Topic, ...],
        places: Places,
        texts: dict[str, str],
        brief: Brief,
        ctx: Context,
    ) -> tuple[tuple[Topic, ...], Places]:
        """Look for topics in what is left, and place what is left once more."""
        left = [each for each, where in places.items() if where == (OTHER,)]
        batches = samples(texts[each] for each in left if not is_suspicious(texts[each]))[:1]

        async def extend(ctx: Context) -> TopicsAnswer:
            text = data({"comments": batches[0]})
            try:
                return await self._topics("extending", text, brief, ctx, topics_part(topics))
            except (Declined, TooLong):
                return TopicsAnswer(topics=[])

        proposed = await ctx.step("extending", extend)
        grown = extended(topics, proposed.topics, brief)
        if grown == topics:
            return topics, places
        return grown, places | await self._place(left, texts, grown, brief, ctx, again="again ")


def _put_together(proposed: Sequence[TopicsAnswer]) -> TopicsAnswer:
    """All proposals, one topic of each in turn: topics of the same name become one later."""
    turns = zip_longest(*(each.topics for each in proposed))
    return TopicsAnswer(
        topics=[topic for turn in turns for topic in turn if topic is not None][:MOST_PROPOSED]
    )


def _piece(text: str) -> BatchItem:
    return BatchItem(
        fingerprint(text),
        {"text": text},
        estimate_tokens(compact(text)) + AROUND,
        alone=is_suspicious(text),
    )


def _valid(given: Iterable[str], known: frozenset[str]) -> tuple[str, ...] | None:
    """The ids that exist; "other" only where nothing else is."""
    ids = tuple(dict.fromkeys(each.strip() for each in given if each.strip() in known))
    real = tuple(each for each in ids if each != OTHER)[:MOST_PLACES]
    return real or ids or None


def _too_many_left(new: Sequence[str], places: Places, texts: dict[str, str]) -> bool:
    counted = [each for each in new if not is_suspicious(texts[each])]
    left = sum(places[each] == (OTHER,) for each in counted)
    return left >= max(A_FEW, TOO_MANY * len(counted))


def _placements(comments: Sequence[Comment], places: Places) -> Iterable[Placement]:
    for comment in comments:
        for subtopic in places[fingerprint(comment.text)]:
            yield Placement(comment.id, subtopic, 0, len(comment.text))


def _taken_over(known: KnownTaxonomy, texts: dict[str, str]) -> list[str]:
    seen = len(known.among(texts))
    if not known.topics or seen == len(texts):
        return []
    return [
        f"Topics were taken over from an earlier report, which had {seen} of these {len(texts)} "
        "different comments."
    ]
