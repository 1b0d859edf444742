"""Questions about several comments in one call, and the answer to each comment cached on its own:
the claims that it makes, and the words that a claim rests on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from holdfast.apps.report.llm.answers import ClaimAnswer, ExtractionAnswer, QuotesAnswer
from holdfast.apps.report.llm.batching import BatchItem
from holdfast.apps.report.llm.questions import data_block
from holdfast.apps.report.llm.text_cleaning import truncate
from holdfast.ports.context import Context
from holdfast.ports.language_model import CacheKey, LanguageModel, Question

S = TypeVar("S", bound=BaseModel)
A = TypeVar("A")

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

    async def recall(self, batch_key: ExtractionKey, item: BatchItem, ctx: Context) -> A | None:
        if batch_key.fresh:
            return None
        return await self._model.recall(self._key(batch_key, item), self._answer, ctx)

    async def ask(
        self, batch_key: ExtractionKey, items: Sequence[BatchItem], ctx: Context
    ) -> list[A | None]:
        listed = [{"id": str(number), **item.body} for number, item in enumerate(items, 1)]
        tokens = sum(item.tokens for item in items)
        question = Question(
            batch_key.system,
            data_block({"comments": listed}),
            self._task,
            self.output(len(items), tokens),
        )

        def cache_parts(answer: S) -> Iterator[tuple[CacheKey, A]]:
            for item, part in zip(items, self.read(answer, items), strict=True):
                if part is not None:
                    yield self._key(batch_key, item), part

        answer = await self._model.ask(
            question, self._shape, ctx, budget=batch_key.budget, cache_parts=cache_parts
        )
        return self.read(answer, items)

    def _key(self, batch_key: ExtractionKey, item: BatchItem) -> CacheKey:
        return self._model.name, self._task, batch_key.ground, item.identity

    @abstractmethod
    def output(self, items: int, tokens: int) -> int:
        """The most tokens that an honest answer takes."""

    @abstractmethod
    def read(self, answer: S, items: Sequence[BatchItem]) -> list[A | None]:
        """The answers in the order of the items; None for those that were passed over."""


class ExtractionHandler(CommentHandler[ExtractionAnswer, list[CachedClaim]]):
    def output(self, items: int, tokens: int) -> int:
        return min(MOST_OUTPUT, 300 + 100 * items + 3 * tokens)

    def read(
        self, answer: ExtractionAnswer, items: Sequence[BatchItem]
    ) -> list[list[CachedClaim] | None]:
        """Comment by comment; if most of them are said to say what they do not, nothing in the
        answer is believed."""
        # Reversed: of two answers about one comment the first counts.
        claims = {comment.id.strip(): comment.claims for comment in reversed(answer.comments)}
        cached = [_to_cache(claims.get(str(number)), item) for number, item in enumerate(items, 1)]
        speaking = [(parts, item) for parts, item in zip(cached, items, strict=True) if parts]
        foreign = sum(not _quotes_any(parts, item.body["text"]) for parts, item in speaking)
        return [None] * len(items) if foreign >= max(2, len(speaking) / 2) else cached


def _to_cache(claims: Sequence[ClaimAnswer] | None, item: BatchItem) -> list[CachedClaim] | None:
    if claims is None:
        return None
    ids: list[str] = item.body["subtopics"]
    return [
        CachedClaim(
            statement=truncate(claim.statement, STATEMENT).strip("“”"),
            quote=claim.quote,
            subtopic=ids.index(claim.subtopic) if claim.subtopic in ids else 0,
        )
        for claim in claims[:MOST_CLAIMS]
    ]


def _quotes_any(claims: Sequence[CachedClaim], text: str) -> bool:
    """Whether at least one quote is the comment's own, spaces and case aside. The pipeline looks
    more closely."""
    letters = _letters(text)
    return any(_letters(claim.quote) in letters for claim in claims)


def _letters(text: str) -> str:
    return "".join(text.split()).casefold()


class RequoteHandler(CommentHandler[QuotesAnswer, str]):
    def output(self, items: int, tokens: int) -> int:
        return min(MOST_OUTPUT, 200 + 30 * items + 2 * tokens)

    def read(self, answer: QuotesAnswer, items: Sequence[BatchItem]) -> list[str | None]:
        quotes = {entry.id.strip(): entry.quote for entry in reversed(answer.quotes)}
        return [quotes.get(str(number)) for number in range(1, len(items) + 1)]
