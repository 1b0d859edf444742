"""An analyst who asks the fake server on a real socket, comments to give it, and a context that
keeps the bill."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.answer_cache import AnswerCache
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.llm.language_model import HttpLanguageModel
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.apps.report.llm.analyst import LLMAnalyst
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim, claim_id, group_id
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import Placement, Subtopic, Topic
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.model.clock import SystemClock
from holdfast.model.usage import Usage
from holdfast.testing.fakellm import FakeLLM

BRIEF = Brief(title="Our town", question="What should our town do?")
THINGS = ("buses", "parks", "schools", "taxes", "bicycles", "noise", "markets", "libraries")
PLACES = (
    "harbour",
    "station",
    "mill",
    "hill",
    "valley",
    "bridge",
    "castle",
    "meadow",
    "canal",
    "square",
)
WISHES = (
    "should be cheaper near the {place}",
    "need more room around the {place}",
    "must never close before ten at the {place}",
    "are what I like best about the {place}",
    "deserve more money than the {place}",
)
TOPICS = (
    Topic(
        "t1",
        "Buses",
        "All about buses.",
        (
            Subtopic("t1.1", "Fares", "What a ride costs."),
            Subtopic("t1.2", "Timetables", "When buses run."),
        ),
    ),
    Topic("t2", "Parks", "All about parks.", (Subtopic("t2.1", "Trees", "Shade."),)),
)


class FakeContext:
    """As much of a context as an analyst uses. Nothing is checkpointed; items run all at once."""

    def __init__(
        self,
        tenant: str = "acme",
        run: str = "run-1",
        step: str = "step",
        bill: Usage | None = None,
    ) -> None:
        self.tenant = tenant
        self.run_id = run
        self.step_name = step
        self.own = Usage()
        self.warnings: list[str] = []
        self.log: Any = SimpleNamespace(warning=self.warnings.append)
        self.spent = bill if bill is not None else Usage()

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
        calls: int = 1,
    ) -> None:
        self.own.count(input_tokens, output_tokens, cost, calls)
        self.spent.count(input_tokens, output_tokens, cost, calls)

    def item(self) -> Any:
        return FakeContext(self.tenant, self.run_id, self.step_name, self.spent)

    async def map(self, fn: Any, items: Iterable[Any], **options: Any) -> list[Any]:
        return await asyncio.gather(*(fn(item, ctx=self.item()) for item in items))

    async def step(self, name: str, fn: Any, *args: Any, key: object = None) -> Any:
        return await fn(*args, ctx=self.item())

    async def secret(self, *names: str, configured: str | None = None) -> str | None:
        return configured


@dataclass
class Harness:
    fake: FakeLLM
    model: HttpLanguageModel
    analyst: LLMAnalyst
    blobs: MemoryBlobs
    ctx: Any = field(default_factory=FakeContext)

    def asked(self, since: int = 0) -> dict[str, int]:
        """How many calls of each task were made."""
        return dict(Counter(call.task for call in self.fake.calls[since:]))

    def another_model(self) -> HttpLanguageModel:
        """The model in a later process: it shares what is stored, and nothing else."""
        client = ModelClient(self.model._client.address, environment=self.fake.environment)
        return language_model(client, self.blobs)


def language_model(client: ModelClient, blobs: MemoryBlobs) -> HttpLanguageModel:
    return HttpLanguageModel(client, AnswerCache(blobs, SystemClock(), 30 * 86_400))


@asynccontextmanager
async def harness(
    brain: Any = None,
    *,
    vendor: str = "openai",
    address: dict[str, Any] | None = None,
    **options: Any,
):
    prices = {"input_price": 0.15, "output_price": 0.6}
    async with FakeLLM(brain or ReportBrain(), **options) as fake:
        client = ModelClient(
            parse(fake.address(vendor, **{**prices, **(address or {})})),
            environment=fake.environment,
        )
        blobs = MemoryBlobs()
        model = language_model(client, blobs)
        try:
            yield Harness(fake, model, LLMAnalyst(model), blobs)
        finally:
            await model.aclose()
        assert not fake.errors, fake.errors


def run_story(
    story: Callable[[Harness], Coroutine[Any, Any, Any]], brain: Any = None, **options: Any
) -> Any:
    """Play a story against a server on a real socket."""

    async def whole() -> Any:
        async with harness(brain, **options) as set_up:
            return await story(set_up)

    return asyncio.run(whole())


def comments(number: int, start: int = 0) -> list[Comment]:
    """Made-up comments, all different."""
    return [comment(str(index), text(index)) for index in range(start, start + number)]


def text(index: int) -> str:
    subject = THINGS[index % len(THINGS)]
    town = PLACES[index // len(THINGS) % len(PLACES)]
    wish = WISHES[index // (len(THINGS) * len(PLACES)) % len(WISHES)].format(place=town)
    return f"The {subject} {wish} (no. {index})."


def comment(id_: str, text: str) -> Comment:
    return Comment(id_, int(id_) if id_.isdigit() else 0, text, f"speaker {id_}")


def whole(comment: Comment, *subtopics: str) -> list[Placement]:
    return [Placement(comment.id, subtopic, 0, len(comment.text)) for subtopic in subtopics]


def claim(statement: str, speaker: str = "ann", quote: str = "") -> QuotedClaim:
    quote = quote or statement
    id_ = claim_id(speaker, 0, len(quote), statement)
    return QuotedClaim(
        id_, f"comment of {speaker}", speaker, "t1.1", statement, quote, 0, len(quote)
    )


def group(statement: str, *speakers: str) -> ClaimGroup:
    members = tuple(claim(statement, speaker) for speaker in speakers or ("ann",))
    return ClaimGroup(group_id(members), "t1.1", statement, members)
