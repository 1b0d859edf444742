"""The analyst that needs nobody: topics, claims, groups and summaries from the comments alone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from holdfast.apps.report.local import findings, grouping, tensions, topics
from holdfast.apps.report.local import summaries as writing
from holdfast.apps.report.local.messages import base_language, message
from holdfast.apps.report.local.sentence_encoder import sentence_encoder
from holdfast.apps.report.local.sentence_value import is_filler
from holdfast.apps.report.local.statements import as_statement
from holdfast.apps.report.local.topics import SentenceParts
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimDraft, ClaimGroup, ProposedGroup, QuotedClaim
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.crux import Basis, Crux, CruxDraft
from holdfast.apps.report.model.document import PromptUsed
from holdfast.apps.report.model.estimate import Estimate
from holdfast.apps.report.model.opinion import VoteEvidence
from holdfast.apps.report.model.remark import Remark
from holdfast.apps.report.model.summary import Sentence, TopicSummary
from holdfast.apps.report.model.taxonomy import Clustering, Placement, Subtopic, Topic
from holdfast.ports.context import Context

_CHUNK = 500
"""Comments split into sentences at once, between two reports of progress."""


class LocalAnalyst:
    """An `Analyst` without a network, a key or a cost. The same comments always give the same
    answers.

    What takes long runs in threads, so that the event loop stays free.
    """

    generates = False
    in_flight = 64

    def __init__(self, encoder: str = "") -> None:
        """`encoder` names the sentence encoder that helps to find topics; without one, words do."""
        self.name = f"local:{encoder}" if encoder else "local"
        self._encoder = sentence_encoder if encoder else None

    async def cluster(self, comments: Sequence[Comment], brief: Brief, ctx: Context) -> Clustering:
        """Half the progress is splitting comments into sentences, the other half finding topics in
        them."""
        parts, sentences = [], 0
        for start in range(0, len(comments), _CHUNK):
            chunk = await asyncio.to_thread(
                topics.split_comments, comments[start : start + _CHUNK], start
            )
            parts += chunk.kept
            sentences += chunk.sentences
            ctx.progress(min(start + _CHUNK, len(comments)) // 2, len(comments))
        sentence_parts = SentenceParts(tuple(parts), sentences)
        clustering = await asyncio.to_thread(self._find_topics, comments, sentence_parts, brief)
        ctx.progress(len(comments), len(comments))
        return clustering

    def _find_topics(
        self, comments: Sequence[Comment], parts: SentenceParts, brief: Brief
    ) -> Clustering:
        encoder = self._encoder() if self._encoder else None
        return topics.find_topics(comments, parts, brief, encoder)

    async def extract(
        self,
        comment: Comment,
        placements: Sequence[Placement],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
    ) -> list[ClaimDraft]:
        """Each placed part is a claim, unless it says nothing: then the comment makes none."""
        quotes = [(comment.text[p.start : p.end], p) for p in placements]
        return [
            ClaimDraft(as_statement(quote), quote, p.subtopic, p.start)
            for quote, p in quotes
            if not is_filler(quote)
        ]

    async def requote(self, comment: Comment, draft: ClaimDraft, brief: Brief, ctx: Context) -> str:
        """Nothing to ask again: its quotes are cut from the comment."""
        return ""

    async def group(
        self, subtopic: Subtopic, claims: Sequence[QuotedClaim], brief: Brief, ctx: Context
    ) -> list[ProposedGroup]:
        return await asyncio.to_thread(grouping.group, claims)

    async def summarise(
        self,
        topic: Topic,
        groups: Sequence[ClaimGroup],
        brief: Brief,
        ctx: Context,
        votes: VoteEvidence | None = None,
        cruxes: Sequence[Crux] = (),
    ) -> list[Sentence]:
        return await asyncio.to_thread(writing.summarise, topic, groups, brief.language)

    async def overview(
        self,
        topics: Sequence[Topic],
        summaries: Sequence[TopicSummary],
        groups: Mapping[str, Sequence[ClaimGroup]],
        brief: Brief,
        ctx: Context,
        votes: VoteEvidence | None = None,
        cruxes: Sequence[Crux] = (),
    ) -> list[Sentence]:
        return await asyncio.to_thread(findings.overview, topics, groups, brief.language, votes)

    async def review(
        self,
        topics: Sequence[Topic],
        groups: Mapping[str, Sequence[ClaimGroup]],
        findings: Sequence[Sentence],
        brief: Brief,
        ctx: Context,
    ) -> list[Remark]:
        """Nothing: who only counts words can't judge them."""
        return []

    async def crux(
        self, subtopic: Subtopic, groups: Sequence[ClaimGroup], brief: Brief, ctx: Context
    ) -> CruxDraft | None:
        return await asyncio.to_thread(tensions.tension, groups, brief.language)

    def estimate(self, comments: Sequence[Comment], brief: Brief, cruxes: bool) -> Estimate:
        return Estimate(self.name, len(comments), ())

    def prompts(self, brief: Brief) -> list[PromptUsed]:
        return []

    def notes(self, language: str, basis: Collection[Basis] = ()) -> list[str]:
        """The limits that every report of this analyst has, in the report's language where that is
        known."""
        keys = ["method", "merging"] + ["encoder"] * (self._encoder is not None)
        keys += ["votes"] * (Basis.VOTES in basis) + ["tensions"] * (Basis.TENSION in basis)
        keys += [] if base_language(language) in ("en", "und") else ["weaker"]
        return [message(language, key) for key in keys]
