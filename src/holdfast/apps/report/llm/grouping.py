"""Claims that say the same become one group, also when there are more of them than a model sees at
once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.apps.report.llm.answers import GroupsAnswer
from holdfast.apps.report.llm.injection import must_stay_apart
from holdfast.apps.report.llm.questions import data_block, digest, system_prompt
from holdfast.apps.report.llm.text_cleaning import truncate
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ProposedGroup, QuotedClaim
from holdfast.apps.report.model.taxonomy import Subtopic
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

R = TypeVar("R")

MOST = 60
"""Claims in one call."""
LEAST = 20
STATEMENT = 300
ROUNDS = 4
WORTHWHILE = 0.02
"""The share of statements that a round has to merge for another one to follow."""
TELLING_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A statement and the claims behind it."""

    statement: str
    members: tuple[str, ...]


class Grouper:
    """Asks which claims of a subtopic say the same.

    Equal statements need no model. Of the others at most `MOST` go into one call. When there are
    more, those that share an uncommon word go together; what stands for the groups is then grouped
    again, by other words, until that is no longer worth it."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def group(
        self, subtopic: Subtopic, claims: Sequence[QuotedClaim], brief: Brief, ctx: Context
    ) -> list[ProposedGroup]:
        kept_apart = [claim for claim in claims if must_stay_apart(claim)]
        bundles = _equal([claim for claim in claims if not must_stay_apart(claim)])
        for round_number in range(ROUNDS):
            parts = list(_parts(_ordered(bundles, round_number)))
            merged = await gather_all(
                self._merge_part(subtopic, part, brief, ctx) for part in parts
            )
            before, bundles = len(bundles), [bundle for part in merged for bundle in part]
            if len(parts) <= 1 or before - len(bundles) < WORTHWHILE * before:
                break
        single = [Bundle(claim.statement, (claim.id,)) for claim in kept_apart]
        position = {claim.id: index for index, claim in enumerate(claims)}
        in_order = sorted(
            [*bundles, *single],
            key=lambda bundle: min(position[member] for member in bundle.members),
        )
        return [ProposedGroup(bundle.statement, bundle.members) for bundle in in_order]

    async def _merge_part(
        self, subtopic: Subtopic, part: Sequence[Bundle], brief: Brief, ctx: Context
    ) -> list[Bundle]:
        if len(part) < 2:
            return list(part)
        about = {"name": subtopic.name, "description": subtopic.description}
        listed = [
            {"id": str(number), "statement": bundle.statement}
            for number, bundle in enumerate(part, 1)
        ]
        question = Question(
            system_prompt(brief, "dedup"),
            data_block({"subtopic": about, "claims": listed}),
            "dedup",
            max_output=600 + 60 * len(part),
        )
        try:
            answer = await self._model.ask(
                question, GroupsAnswer, ctx, budget=brief.budget, fresh=brief.fresh
            )
            return merge_as_answered(part, answer)
        except (Declined, TooLong):  # half of them at a time; two that can't be compared stay apart
            if len(part) == 2:
                return list(part)
            halves = part[: len(part) // 2], part[len(part) // 2 :]
            return [
                bundle
                for half in halves
                for bundle in await self._merge_part(subtopic, half, brief, ctx)
            ]


def merge_as_answered(part: Sequence[Bundle], answer: GroupsAnswer) -> list[Bundle]:
    """The bundles merged as the answer says. Unknown ids are nothing, the first place counts, the
    rest stand alone."""
    unmerged = {str(number): bundle for number, bundle in enumerate(part, 1)}
    merged = []
    for group in answer.groups:
        members = [unmerged.pop(id.strip()) for id in group.claims if id.strip() in unmerged]
        if members:
            merged.append(_merge(members, truncate(group.statement, STATEMENT)))
    return [*merged, *unmerged.values()]


def _merge(bundles: Sequence[Bundle], statement: str) -> Bundle:
    """What most claims say, comes first; a group of one keeps its own words."""
    typical = max(bundles, key=lambda bundle: len(bundle.members))
    in_order = [typical, *(bundle for bundle in bundles if bundle is not typical)]
    members = tuple(member for bundle in in_order for member in bundle.members)
    return Bundle(statement if statement and len(bundles) > 1 else typical.statement, members)


def _equal(claims: Sequence[QuotedClaim]) -> list[Bundle]:
    """Claims whose statements differ in nothing but case, spaces and the last full stop."""
    same: dict[str, list[QuotedClaim]] = {}
    for claim in claims:
        same.setdefault(" ".join(claim.statement.split()).casefold().rstrip(".!。"), []).append(
            claim
        )
    return [
        Bundle(truncate(claims[0].statement, STATEMENT), tuple(claim.id for claim in claims))
        for claims in same.values()
    ]


def _parts(bundles: Sequence[Bundle]) -> Iterator[Sequence[Bundle]]:
    """As few parts as fit. Where one ends is decided by content: a new claim changes its own part,
    not all after it."""
    if len(bundles) <= MOST:
        yield bundles
        return
    start = 0
    for index, bundle in enumerate(bundles, 1):
        size = index - start
        if size == MOST or (size >= LEAST and int(digest(bundle.statement)[:8], 16) % LEAST == 0):
            yield bundles[start:index]
            start = index
    if start < len(bundles):
        yield bundles[start:]


def _ordered(bundles: Sequence[Bundle], round_number: int) -> list[Bundle]:
    """Beside each other what shares an uncommon word: the least common one first, another one in
    every round."""
    words = {
        id(bundle): sorted(set(map(str.casefold, TELLING_WORD.findall(bundle.statement))))
        for bundle in bundles
    }
    counts = Counter(word for words_of_bundle in words.values() for word in words_of_bundle)

    def telling(bundle: Bundle) -> tuple[Sequence[str], str, tuple[str, ...]]:
        shared = sorted(
            (word for word in words[id(bundle)] if counts[word] > 1),
            key=lambda word: (counts[word], word),
        )
        return (
            shared[round_number:] + shared[:round_number],
            bundle.statement.casefold(),
            bundle.members,
        )

    return sorted(bundles, key=telling)


async def gather_all(calls: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """All results in order. When one fails the others are stopped, and its error is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
