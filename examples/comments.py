"""A realistic pipeline file: comments in, a report out.

    holdfast --app examples/comments.py run comments
    holdfast --app examples/comments.py run comments --input title=Parks --input cruxes:=true
    holdfast --app examples/comments.py worker

The calls to a language model are simulated, so that the file runs anywhere; the rest is as in
production."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from operator import attrgetter

from pydantic import BaseModel

from holdfast import BlockingContext, Context, Items, Pipeline

SAMPLE = [
    "The park needs more benches in the shade",
    "Benches are fine, the paths are what is broken",
    "Dogs should be on a leash near the playground",
    "The playground is too close to the street",
    "More shade, please: plant trees along the paths",
    "Dogs need a place of their own",
]
TOPICS = ("benches", "paths", "dogs", "playground", "shade")
PRICE_PER_TOKEN = 0.000_002


class Comment(BaseModel):
    id: str
    text: str


class Request(BaseModel):
    """The input: validated when a run is submitted and whenever it is read back."""

    title: str = "Our park"
    comments: list[Comment] = [Comment(id=f"c-{n}", text=text) for n, text in enumerate(SAMPLE, 1)]
    cruxes: bool = False


class Claim(BaseModel):
    comment: str
    topics: list[str]
    text: str


class Report(BaseModel):
    title: str
    topics: dict[str, int]
    cruxes: list[str]


comments = Pipeline("comments", input=Request, timeout="10m")


@comments.step
async def topics(request: Request, ctx: Context) -> list[str]:
    """What the comments are about: one call for all of them."""
    answer = await ask_model(" ".join(comment.text for comment in request.comments), ctx)
    return [topic for topic in TOPICS if topic in answer]


@comments.step(max_attempts=5)
async def claims(request: Request, topics: list[str], ctx: Context) -> list[Claim]:
    """One call per comment, each answer stored under the comment's id: a crash repeats those in
    flight."""
    return await ctx.map(
        partial(extract, topics), request.comments, key=attrgetter("id"), concurrency=4
    )


async def extract(topics: list[str], comment: Comment, ctx: Context) -> Claim:
    answer = await ask_model(comment.text, ctx)
    return Claim(
        comment=comment.id, topics=[topic for topic in topics if topic in answer], text=answer
    )


@comments.step
async def tally(claims: Items[Claim]) -> dict[str, int]:
    """Runs beside `claims` and takes its items as they finish."""
    counts: Counter[str] = Counter()
    async for _, claim in claims:
        counts.update(claim.topics)
    return dict(sorted(counts.items()))


@comments.step(when=lambda request: request.cruxes)
async def cruxes(tally: dict[str, int]) -> list[str]:
    """Optional, so whoever uses it is given None when it was skipped."""
    return sorted(topic for topic, count in tally.items() if count > 1)


@comments.step
def report(
    request: Request, tally: dict[str, int], cruxes: list[str] | None, ctx: BlockingContext
) -> Report:
    """A plain `def` runs in a thread. The page is an artifact; `holdfast runs logs` says where it
    is."""
    lines = [f"# {request.title}", "", *(f"- {topic}: {count}" for topic, count in tally.items())]
    ctx.log.info("page written", where=ctx.artifact("report.md", "\n".join(lines).encode()))
    return Report(title=request.title, topics=tally, cruxes=cruxes or [])


async def ask_model(text: str, ctx: Context) -> str:
    """Stands for a call that takes time and costs money; a real one would be given
    `ctx.idempotency_key`."""
    await asyncio.sleep(0.05)
    tokens = len(text.split())
    ctx.usage(input_tokens=tokens, output_tokens=tokens, cost=2 * tokens * PRICE_PER_TOKEN)
    return text.lower()
