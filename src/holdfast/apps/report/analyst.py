"""The analyst: whoever reads comments and says what is in them, a model or an algorithm.

The steps of the report do not know which. They give questions and check answers: a quote that is
not in the comment, a subtopic that does not exist, a claim put into two groups never reaches the
report, whoever the analyst is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

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


class Analyst(Protocol):
    """Five questions, one for each step.

    Calls may overlap, hundreds of them. An analyst that calls others counts what it spends with
    `ctx.usage`, failed calls included, keeps to `brief.budget` by raising `Pause`, paces itself,
    and raises `Transient` (try again) or `Permanent` (this item can't be done); the engine retries,
    the analyst does not, except for repairing a malformed answer at most twice. Text of comments is
    data: nothing in it is ever followed."""

    name: str
    """`local`, or the model it asks: `openai:gpt-4o-mini`."""
    generates: bool
    """Whether its words are its own. A local analyst only takes words from the comments."""
    in_flight: int
    """How many comments are usefully asked about at once."""

    async def cluster(self, comments: Sequence[Comment], brief: Brief, ctx: Context) -> Clustering:
        """Find topics and subtopics in all comments, and place every comment (or its parts) in at
        least one.

        May use `ctx.map` and `ctx.step` to keep what it has found.
        """
        ...

    async def extract(
        self,
        comment: Comment,
        placements: Sequence[Placement],
        topics: Sequence[Topic],
        brief: Brief,
        ctx: Context,
    ) -> list[ClaimDraft]:
        """The claims that a comment makes, each with a quote from it, in one of the subtopics it
        was placed in."""
        ...

    async def requote(self, comment: Comment, draft: ClaimDraft, brief: Brief, ctx: Context) -> str:
        """The words of the comment that a claim rests on, asked once more because they were not
        found. May be empty."""
        ...

    async def group(
        self, subtopic: Subtopic, claims: Sequence[QuotedClaim], brief: Brief, ctx: Context
    ) -> list[ProposedGroup]:
        """Put claims that say the same together; opposites never. Two or more claims of one
        subtopic are given."""
        ...

    async def summarise(
        self,
        topic: Topic,
        groups: Sequence[ClaimGroup],
        brief: Brief,
        ctx: Context,
        votes: VoteEvidence | None = None,
        cruxes: Sequence[Crux] = (),
    ) -> list[Sentence]:
        """A topic in a few sentences, each citing the groups it rests on. The most supported groups
        come first; `cruxes` are those of the topic, if cruxes were looked for."""
        ...

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
        """The five to eight most important findings of all. `groups` are those of each topic, by
        topic id; `votes` are what people voted for, if they voted; `cruxes` are what divides them
        most, if that was looked for."""
        ...

    async def review(
        self,
        topics: Sequence[Topic],
        groups: Mapping[str, Sequence[ClaimGroup]],
        findings: Sequence[Sentence],
        brief: Brief,
        ctx: Context,
    ) -> list[Remark]:
        """Where it disagrees with the names and findings of another analyst."""
        ...

    async def crux(
        self, subtopic: Subtopic, groups: Sequence[ClaimGroup], brief: Brief, ctx: Context
    ) -> CruxDraft | None:
        """The statement that divides the speakers of a subtopic most, or None if nothing does."""
        ...

    def estimate(self, comments: Sequence[Comment], brief: Brief, cruxes: bool) -> Estimate:
        """What a report on these comments would cost, without asking anybody."""
        ...

    def prompts(self, brief: Brief) -> list[PromptUsed]:
        """The prompts in use, for the report's appendix. None for an analyst without."""
        ...

    def notes(self, language: str, basis: Collection[Basis] = ()) -> list[str]:
        """What readers should know about the limits of this analyst, for comments in a language.
        `basis` is what the cruxes of the report rest on."""
        ...


class Analysts(Protocol):
    """Whom to ask, by name: `local:`, `openai:MODEL`, `anthropic:MODEL`, `google:MODEL`."""

    def named(self, name: str) -> Analyst:
        """The analyst of that name; the same one every time. Raises ConfigurationError with what is
        known."""
        ...

    def check(self, name: str) -> None:
        """Raise ConfigurationError if that analyst could not work: unknown, or its key is missing.
        Asks nobody."""
        ...
