"""The analyst who asks a language model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from holdfast.apps.report.llm import extraction
from holdfast.apps.report.llm.clustering import Clusterer
from holdfast.apps.report.llm.cost_estimate import estimate
from holdfast.apps.report.llm.extraction import ClaimExtractor
from holdfast.apps.report.llm.grouping import Grouper
from holdfast.apps.report.llm.prompts import prompts_used
from holdfast.apps.report.llm.reviewing import Reviewer
from holdfast.apps.report.llm.summaries import MOST_GROUPS, Summariser
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
from holdfast.apps.report.translations import Translations
from holdfast.ports.context import Context
from holdfast.ports.language_model import LanguageModel


class LLMAnalyst:
    """An `Analyst` whose words are a model's. Comments share calls; what was answered before is not
    asked again."""

    generates = True

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.in_flight = extraction.COMMENTS_PER_CALL.callers_for(model.in_flight)
        self._model = model
        self._clusterer = Clusterer(model)
        self._reader = ClaimExtractor(model)
        self._grouper = Grouper(model)
        self._writer = Summariser(model)
        self._reviewer = Reviewer(model)

    async def cluster(self, comments: Sequence[Comment], brief: Brief, ctx: Context) -> Clustering:
        return await self._clusterer.cluster(comments, brief, ctx)

    async def extract(
        self,
        comment: Comment,
        placements: Sequence[Placement],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
    ) -> list[ClaimDraft]:
        return await self._reader.extract(comment, placements, topics, brief, ctx)

    async def requote(self, comment: Comment, draft: ClaimDraft, brief: Brief, ctx: Context) -> str:
        return await self._reader.requote(comment, draft, brief, ctx)

    async def group(
        self, subtopic: Subtopic, claims: Sequence[QuotedClaim], brief: Brief, ctx: Context
    ) -> list[ProposedGroup]:
        return await self._grouper.group(subtopic, claims, brief, ctx)

    async def summarise(
        self,
        topic: Topic,
        groups: Sequence[ClaimGroup],
        brief: Brief,
        ctx: Context,
        votes: VoteEvidence | None = None,
        cruxes: Sequence[Crux] = (),
    ) -> list[Sentence]:
        return await self._writer.summarise(topic, groups, brief, ctx, votes, cruxes)

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
        return await self._writer.overview(topics, summaries, groups, brief, ctx, votes, cruxes)

    async def review(
        self,
        topics: Sequence[Topic],
        groups: Mapping[str, Sequence[ClaimGroup]],
        findings: Sequence[Sentence],
        brief: Brief,
        ctx: Context,
    ) -> list[Remark]:
        return await self._reviewer.review(topics, groups, findings, brief, ctx)

    async def crux(
        self, subtopic: Subtopic, groups: Sequence[ClaimGroup], brief: Brief, ctx: Context
    ) -> CruxDraft | None:
        return await self._writer.crux(subtopic, groups, brief, ctx)

    def estimate(self, comments: Sequence[Comment], brief: Brief, cruxes: bool) -> Estimate:
        return estimate(comments, brief, self._model, cruxes)

    def prompts(self, brief: Brief) -> list[PromptUsed]:
        return prompts_used(brief)

    def notes(self, language: str, basis: Collection[Basis] = ()) -> list[str]:
        say = Translations(language)
        return [
            say("note.model.words"),
            say("note.model.kept"),
            say("note.model.most", n=MOST_GROUPS),
            say("note.model.apart"),
        ]
