"""Reading comments: the claims that each one makes, and quotes that were not found. Several
comments share a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from holdfast.apps.report.llm.answers import ClaimAnswer, ExtractionAnswer, QuotesAnswer
from holdfast.apps.report.llm.batching import Batcher, BatchItem, BatchSize
from holdfast.apps.report.llm.injection import in_own_words, is_suspicious
from holdfast.apps.report.llm.questions import compact, data, digest, system, topics_part
from holdfast.apps.report.llm.text_cleaning import clipped
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimDraft
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Placement, Subtopic, Topic
from holdfast.model.tokens import estimate_tokens
from holdfast.ports.context import Context
from holdfast.ports.language_model import CacheKey, Declined, LanguageModel, Question, TooLong

S = TypeVar("S", bound=BaseModel)
A = TypeVar("A")

COMMENTS_PER_CALL = BatchSize(pieces=10, tokens=3_000)
LONG = 1_500
"""Tokens of a comment that is enough for a call of its own."""
AROUND = 12
"""Tokens that the JSON around a comment takes."""
STATEMENT = 300
MOST_OUTPUT = 8_000
"""Tokens: more than an honest answer takes, less than models refuse."""
MOST_CLAIMS = 25


@dataclass(frozen=True, slots=True)
class ExtractionKey:
    """What comments must have in common to share a call."""

    tenant: str
    run: str
    step: str
    system: str
    ground: str
    """What of it decides the answers: the instructions without the taxonomy."""
    budget: float | None
    fresh: bool


class CachedClaim(BaseModel):
    """A claim as it is kept: the subtopic is its place among those that the comment could use."""

    statement: str
    quote: str
    subtopic: int


class CommentHandler(ABC, Generic[S, A]):
    """Asks one kind of question about several comments at once, and keeps the answer to each of
    them on its own."""

    def __init__(self, model: LanguageModel, task: str, shape: type[S], answer: type[A]) -> None:
        self._model = model
        self._task = task
        self._shape = shape
        self._answer = answer

    async def recall(self, pile: ExtractionKey, piece: BatchItem, ctx: Context) -> A | None:
        if pile.fresh:
            return None
        return await self._model.recall(self._key(pile, piece), self._answer, ctx)

    async def ask(
        self, pile: ExtractionKey, pieces: Sequence[BatchItem], ctx: Context
    ) -> list[A | None]:
        listed = [{"id": str(number), **piece.body} for number, piece in enumerate(pieces, 1)]
        tokens = sum(piece.tokens for piece in pieces)
        question = Question(
            pile.system, data({"comments": listed}), self._task, self.output(len(pieces), tokens)
        )

        def answered(answer: S) -> Iterator[tuple[CacheKey, A]]:
            for piece, own in zip(pieces, self.read(answer, pieces), strict=True):
                if own is not None:
                    yield self._key(pile, piece), own

        answer = await self._model.ask(
            question, self._shape, ctx, budget=pile.budget, cache_parts=answered
        )
        return self.read(answer, pieces)

    def _key(self, pile: ExtractionKey, piece: BatchItem) -> CacheKey:
        return self._model.name, self._task, pile.ground, piece.identity

    @abstractmethod
    def output(self, pieces: int, tokens: int) -> int:
        """The most tokens that an honest answer takes."""

    @abstractmethod
    def read(self, answer: S, pieces: Sequence[BatchItem]) -> list[A | None]:
        """The answers in the order of the pieces; None for those that were passed over."""


class ExtractionHandler(CommentHandler[ExtractionAnswer, list[CachedClaim]]):
    def output(self, pieces: int, tokens: int) -> int:
        return min(MOST_OUTPUT, 300 + 100 * pieces + 3 * tokens)

    def read(
        self, answer: ExtractionAnswer, pieces: Sequence[BatchItem]
    ) -> list[list[CachedClaim] | None]:
        """Comment by comment; if most of them are said to say what they do not, nothing in the
        answer is believed."""
        claims = {
            each.id.strip(): each.claims for each in reversed(answer.comments)
        }  # of two answers the first counts
        found = [_kept(claims.get(str(number)), piece) for number, piece in enumerate(pieces, 1)]
        spoken = [(own, piece) for own, piece in zip(found, pieces, strict=True) if own]
        foreign = sum(not _quotes_any(own, piece.body["text"]) for own, piece in spoken)
        return [None] * len(pieces) if foreign >= max(2, len(spoken) / 2) else found


def _kept(claims: Sequence[ClaimAnswer] | None, piece: BatchItem) -> list[CachedClaim] | None:
    if claims is None:
        return None
    ids: list[str] = piece.body["subtopics"]
    return [
        CachedClaim(
            statement=clipped(claim.statement, STATEMENT).strip("“”"),
            quote=claim.quote,
            subtopic=ids.index(claim.subtopic) if claim.subtopic in ids else 0,
        )
        for claim in claims[:MOST_CLAIMS]
    ]


def _quotes_any(claims: Sequence[CachedClaim], text: str) -> bool:
    """Whether at least one quote is the comment's own, spaces and case aside. The pipeline looks
    more closely."""
    own = _letters(text)
    return any(_letters(claim.quote) in own for claim in claims)


def _letters(text: str) -> str:
    return "".join(text.split()).casefold()


class RequoteHandler(CommentHandler[QuotesAnswer, str]):
    def output(self, pieces: int, tokens: int) -> int:
        return min(MOST_OUTPUT, 200 + 30 * pieces + 2 * tokens)

    def read(self, answer: QuotesAnswer, pieces: Sequence[BatchItem]) -> list[str | None]:
        quotes = {each.id.strip(): each.quote for each in reversed(answer.quotes)}
        return [quotes.get(str(number)) for number in range(1, len(pieces) + 1)]


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
        piece = _to_extract(comment.text, ids, topics)
        kept = await self._claims.ask(self._pile(topics, brief, ctx), piece, ctx)
        drafts = [
            ClaimDraft(one.statement, one.quote, ids[min(one.subtopic, len(ids) - 1)])
            for one in kept or ()
        ]
        return _in_own_words(drafts) if is_suspicious(comment.text) else drafts

    def _pile(self, topics: Sequence[Topic], brief: Brief, ctx: Context) -> ExtractionKey:
        """Thousands of comments in a row share theirs: writing it anew for each takes longer than
        all the rest."""
        for_whom = (topics, brief, ctx.run_id, ctx.step_name)
        if self._last is None or any(
            one is not other for one, other in zip(self._last[0], for_whom, strict=True)
        ):
            self._last = for_whom, _pile(brief, "extraction", ctx, topics_part(topics))
        return self._last[1]

    async def requote(self, comment: Comment, draft: ClaimDraft, brief: Brief, ctx: Context) -> str:
        if is_suspicious(comment.text):
            return ""
        body = {"text": comment.text, "claim": draft.statement, "quote": draft.quote}
        try:
            return (
                await self._quotes.ask(
                    _pile(brief, "requote", ctx), _piece(body, comment.text), ctx
                )
                or ""
            )
        except (Declined, TooLong):
            return ""  # one claim less, and its comment is not lost with it


def _pile(brief: Brief, task: str, ctx: Context, *more: str) -> ExtractionKey:
    ground = digest(system(brief, task))
    return ExtractionKey(
        ctx.tenant,
        ctx.run_id,
        ctx.step_name,
        system(brief, task, *more),
        ground,
        brief.budget,
        brief.fresh,
    )


def _to_extract(text: str, ids: Sequence[str], topics: Sequence[Topic]) -> BatchItem:
    """What is asked depends on the comment's words and on what its subtopics are about, not on who
    says it or where."""
    known = {one.id: (topic, one) for topic in topics for one in topic.subtopics}
    other = Topic(OTHER, OTHER, "", (Subtopic(OTHER, OTHER),))
    about = [known.get(each, (other, other.subtopics[0])) for each in ids]
    described = [[topic.name, one.name, one.description] for topic, one in about]
    body = {"subtopics": list(ids), "text": text}
    return _piece(body, text, identity=digest(compact(described), text), near=about[0][0].id)


def _piece(body: dict[str, Any], text: str, *, identity: str = "", near: str = "") -> BatchItem:
    tokens = estimate_tokens(compact(body)) + AROUND
    identity = identity or digest(compact(body))
    return BatchItem(identity, body, tokens, near, alone=tokens > LONG or is_suspicious(text))


def _in_own_words(drafts: Sequence[ClaimDraft]) -> list[ClaimDraft]:
    """A comment that seems to steer the model is given no words but its own: its statements are its
    quotes.

    If those are not in the comment, they are not looked for again, and the claim is lost.
    """
    return [
        ClaimDraft(in_own_words(clipped(each.quote, STATEMENT)), each.quote, each.subtopic)
        for each in drafts
    ]
