"""A second model reads the names and findings of the first, beside the claims they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.apps.report.llm.answers import FindingReviewsAnswer, NameReviewsAnswer
from holdfast.apps.report.llm.injection import must_stay_apart
from holdfast.apps.report.llm.questions import data_block, system_prompt
from holdfast.apps.report.llm.text_cleaning import truncate, without_citations
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.remark import Remark, RemarkKind
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import Topic
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

NAMES_PER_CALL = 12
CLAIMS_PER_NAME = 12
"""The most supported claims under a name that are shown with it."""
WHY = 400

Answer = TypeVar("Answer", NameReviewsAnswer, FindingReviewsAnswer)


class Reviewer:
    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def review(
        self,
        topics: Sequence[Topic],
        groups: Mapping[str, Sequence[ClaimGroup]],
        findings: Sequence[Sentence],
        brief: Brief,
        ctx: Context,
    ) -> list[Remark]:
        """What the model disagrees with. `groups` are those of each topic, the best supported
        first."""
        named = list(_named(topics, groups))
        remarks: list[Remark] = []
        for start in range(0, len(named), NAMES_PER_CALL):
            remarks += await self._names(named[start : start + NAMES_PER_CALL], brief, ctx)
        return remarks + await self._findings(groups, findings, brief, ctx)

    async def _names(
        self, named: Sequence[tuple[str, str, list[ClaimGroup]]], brief: Brief, ctx: Context
    ) -> list[Remark]:
        shown, listed = _numbered(groups for _, _, groups in named)
        payload = {
            "groups": [
                {"id": id, "name": name, "claims": claims}
                for (id, name, _), claims in zip(named, listed, strict=True)
            ]
        }
        answer = await self._ask("review_names", payload, NameReviewsAnswer, brief, ctx)
        names = {id: name for id, name, _ in named}
        return [
            Remark(RemarkKind.NAME, judged.id, names[judged.id], why, _cites(judged.claims, shown))
            for judged in (answer.groups if answer else ())
            if judged.id in names and not judged.fits and (why := _why(judged.why))
        ]

    async def _findings(
        self,
        groups: Mapping[str, Sequence[ClaimGroup]],
        findings: Sequence[Sentence],
        brief: Brief,
        ctx: Context,
    ) -> list[Remark]:
        by_id = {group.id: group for of_topic in groups.values() for group in of_topic}
        cited = [[by_id[id] for id in finding.cites if id in by_id] for finding in findings]
        shown, listed = _numbered(map(_harmless, cited))
        payload = {
            "findings": [
                {"id": str(number), "text": finding.text, "claims": claims}
                for number, (finding, claims) in enumerate(zip(findings, listed, strict=True), 1)
            ]
        }
        if not findings:
            return []
        answer = await self._ask("review_findings", payload, FindingReviewsAnswer, brief, ctx)
        texts = {str(number): finding for number, finding in enumerate(findings, 1)}
        return [
            Remark(
                RemarkKind.FINDING,
                judged.id,
                texts[judged.id].text,
                why,
                _cites(judged.claims, shown) or texts[judged.id].cites,
            )
            for judged in (answer.findings if answer else ())
            if judged.id in texts and not judged.holds and (why := _why(judged.why))
        ]

    async def _ask(
        self, task: str, payload: dict[str, Any], form: type[Answer], brief: Brief, ctx: Context
    ) -> Answer | None:
        question = Question(system_prompt(brief, task), data_block(payload), task, max_output=3_000)
        try:
            return await self._model.ask(
                question, form, ctx, budget=brief.budget, fresh=brief.fresh
            )
        except (Declined, TooLong) as error:
            ctx.log.warning(f"the reviewer did not answer {task}: {error}")
            return None


def _named(
    topics: Sequence[Topic], groups: Mapping[str, Sequence[ClaimGroup]]
) -> Iterable[tuple[str, str, list[ClaimGroup]]]:
    """Every topic, and its subtopics where it has several, with the claims shown beside the
    name."""
    for topic in topics:
        harmless = _harmless(groups.get(topic.id, ()))
        parts = [(topic.id, topic.name, harmless)]
        if len(topic.subtopics) > 1:
            parts += [
                (part.id, part.name, [group for group in harmless if group.subtopic == part.id])
                for part in topic.subtopics
            ]
        yield from ((id, name, of[:CLAIMS_PER_NAME]) for id, name, of in parts if of)


def _harmless(groups: Iterable[ClaimGroup]) -> list[ClaimGroup]:
    return [group for group in groups if not any(map(must_stay_apart, group.members))]


def _numbered(
    several: Iterable[Sequence[ClaimGroup]],
) -> tuple[list[ClaimGroup], list[list[dict[str, Any]]]]:
    """All groups in one count from 1, and how each list of them is shown."""
    shown: list[ClaimGroup] = []
    listed = []
    for groups in several:
        listed.append(
            [
                {"number": number, "statement": group.statement}
                for number, group in enumerate(groups, len(shown) + 1)
            ]
        )
        shown += groups
    return shown, listed


def _cites(numbers: Iterable[int], shown: Sequence[ClaimGroup]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(shown[number - 1].id for number in numbers if 1 <= number <= len(shown))
    )


def _why(text: str) -> str:
    return truncate(without_citations(text), WHY)
