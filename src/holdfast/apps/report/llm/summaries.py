"""Summaries, findings and cruxes: sentences that cite by number, and speakers who are numbers, not
names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.apps.report.llm.answers import CruxAnswer, SentencesAnswer
from holdfast.apps.report.llm.evidence_payload import EvidencePayload, tally_payload
from holdfast.apps.report.llm.injection import must_stay_apart
from holdfast.apps.report.llm.questions import data_block, system_prompt
from holdfast.apps.report.llm.text_cleaning import truncate, without_citations
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.crux import Crux, CruxDraft
from holdfast.apps.report.model.opinion import VoteEvidence
from holdfast.apps.report.model.summary import Sentence, TopicSummary
from holdfast.apps.report.model.taxonomy import Subtopic, Topic
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, LanguageModel, Question, TooLong

MOST_GROUPS = 60
GROUPS_OF_A_TOPIC = 8
"""In the overview, where the summaries of the topics are given as well."""
MOST_CRUXES = 10
MOST_SENTENCES = 12
MOST_FINDINGS = 8
MOST_SPEAKERS = 150
SENTENCE = 600
EXPLANATION = (30, 500)


class Summariser:
    """Asks for sentences about groups. What looks as if it wanted to steer the model is not laid
    before it."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def summarise(
        self,
        topic: Topic,
        groups: Sequence[ClaimGroup],
        brief: Brief,
        ctx: Context,
        votes: VoteEvidence | None = None,
        cruxes: Sequence[Crux] = (),
    ) -> list[Sentence]:
        shown = _harmless(groups)[:MOST_GROUPS]
        if not shown:
            return []
        names = {subtopic.id: subtopic.name for subtopic in topic.subtopics}
        listed = [
            {**_numbered(number, group), "subtopic": names.get(group.subtopic, "")}
            for number, group in enumerate(shown, 1)
        ]
        payload = {
            "topic": {"name": topic.name, "description": topic.description},
            "claims": listed,
            **_not_shown(len(groups) - len(shown)),
            **_evidence(votes, cruxes, shown),
        }
        return await self._sentences("summaries", payload, shown, MOST_SENTENCES, brief, ctx)

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
        written = {
            summary.topic: " ".join(sentence.text for sentence in summary.sentences)
            for summary in summaries
        }
        shown: list[ClaimGroup] = []
        listed = []
        told = _claims_of(votes, cruxes)
        for topic in topics:
            harmless = _harmless(groups.get(topic.id, ()))
            of_topic = [
                group
                for rank, group in enumerate(harmless)
                if rank < GROUPS_OF_A_TOPIC or group.id in told
            ]
            claims = [
                _numbered(number, group) for number, group in enumerate(of_topic, len(shown) + 1)
            ]
            listed.append(
                {
                    "topic": topic.name,
                    "summary": written.get(topic.id, ""),
                    "claims": claims,
                    **_not_shown(len(harmless) - len(of_topic)),
                }
            )
            shown += of_topic
        if not shown:
            return []
        payload = {"topics": listed, **_evidence(votes, cruxes, shown)}
        return await self._sentences("overview", payload, shown, MOST_FINDINGS, brief, ctx)

    async def _sentences(
        self,
        task: str,
        payload: dict[str, Any],
        shown: Sequence[ClaimGroup],
        most: int,
        brief: Brief,
        ctx: Context,
    ) -> list[Sentence]:
        question = Question(system_prompt(brief, task), data_block(payload), task, max_output=2_000)
        try:
            answer = await self._model.ask(
                question,
                SentencesAnswer,
                ctx,
                budget=brief.budget,
                fresh=brief.fresh,
                check=_cites_something(len(shown)),
            )
        except (Declined, TooLong) as error:
            ctx.log.warning(f"the model wrote no {task}: {error}")
            return []
        sentences = [
            Sentence(
                truncate(without_citations(proposed.text), SENTENCE), _known(proposed.claims, shown)
            )
            for proposed in answer.sentences
        ]
        return [proposed for proposed in sentences if proposed.text][:most]

    async def crux(
        self, subtopic: Subtopic, groups: Sequence[ClaimGroup], brief: Brief, ctx: Context
    ) -> CruxDraft | None:
        harmless = _harmless(groups)
        shown = harmless[:MOST_GROUPS]
        speakers = list(dict.fromkeys(speaker for group in shown for speaker in group.speakers))[
            :MOST_SPEAKERS
        ]
        if len(shown) < 2 or len(speakers) < 2:
            return None
        payload = {
            "subtopic": {"name": subtopic.name, "description": subtopic.description},
            "claims": [
                {"number": number, "statement": group.statement}
                for number, group in enumerate(shown, 1)
            ],
            "speakers": _what_they_said(speakers, shown),
            **_not_shown(len(harmless) - len(shown)),
        }
        question = Question(
            system_prompt(brief, "crux"),
            data_block(payload),
            "crux",
            max_output=1_200 + 10 * len(speakers),
        )
        try:
            answer = await self._model.ask(
                question,
                CruxAnswer,
                ctx,
                budget=brief.budget,
                fresh=brief.fresh,
                check=_explains,
            )
            return _crux(answer, shown, speakers)
        except (Declined, TooLong) as error:
            ctx.log.warning(f"the model looked for no crux in {subtopic.name!r}: {error}")
            return None


def _harmless(groups: Iterable[ClaimGroup]) -> list[ClaimGroup]:
    return [group for group in groups if not any(map(must_stay_apart, group.members))]


def _numbered(number: int, group: ClaimGroup) -> dict[str, Any]:
    numbered = {"number": number, "people": len(group.speakers), "statement": group.statement}
    return {**numbered, "votes": tally_payload(group.votes)} if group.votes else numbered


def _not_shown(count: int) -> dict[str, int]:
    """Said to the model where claims are left out: those with the least support."""
    return {"not_shown": count} if count > 0 else {}


def _evidence(
    votes: VoteEvidence | None, cruxes: Sequence[Crux], shown: Sequence[ClaimGroup]
) -> dict[str, Any]:
    """What the votes say of the claims that are shown, and the statements that divide people
    most."""
    payload = EvidencePayload(shown)
    dividing = payload.cruxes(cruxes[:MOST_CRUXES])
    return {
        **({"opinions": payload.votes(votes)} if votes else {}),
        **({"divides": dividing} if dividing else {}),
    }


def _claims_of(votes: VoteEvidence | None, cruxes: Sequence[Crux]) -> set[str]:
    """The claims that votes and cruxes speak of: they are shown whatever their rank."""
    dividing = {claim for crux in cruxes[:MOST_CRUXES] for claim in crux.cites}
    if votes is None:
        return dividing
    marks = [mark for group in votes.groups for mark in group.marks]
    return {
        *dividing,
        *(statement.claim for statement, _ in (*votes.shared, *marks)),
        *(statement.claim for statement in (*votes.splits, *votes.unsure)),
    }


def _known(numbers: Iterable[int], shown: Sequence[ClaimGroup]) -> tuple[str, ...]:
    """The groups behind the numbers; those that were never given are nothing."""
    return tuple(
        dict.fromkeys(shown[number - 1].id for number in numbers if 1 <= number <= len(shown))
    )


def _cites_something(claims: int) -> Callable[[SentencesAnswer], str | None]:
    def check(answer: SentencesAnswer) -> str | None:
        if any(
            1 <= number <= claims for sentence in answer.sentences for number in sentence.claims
        ):
            return None
        return (
            "no sentence lists the number of a claim that it rests on; numbers run from 1 to "
            f"{claims}"
        )

    return check


def _what_they_said(speakers: Sequence[str], shown: Sequence[ClaimGroup]) -> list[dict[str, Any]]:
    numbers = {speaker: number for number, speaker in enumerate(speakers, 1)}
    claims_by_speaker: dict[int, list[int]] = {number: [] for number in numbers.values()}
    for claim, group in enumerate(shown, 1):
        for speaker in group.speakers:
            if speaker in numbers:
                claims_by_speaker[numbers[speaker]].append(claim)
    return [{"number": number, "claims": claims} for number, claims in claims_by_speaker.items()]


def _explains(answer: CruxAnswer) -> str | None:
    if not answer.divided or len(without_citations(answer.explanation)) >= EXPLANATION[0]:
        return None
    return f"the explanation has to have {EXPLANATION[0]} to {EXPLANATION[1]} characters"


def _crux(
    answer: CruxAnswer, shown: Sequence[ClaimGroup], speakers: Sequence[str]
) -> CruxDraft | None:
    def named(numbers: Iterable[int], others: Iterable[int]) -> tuple[str, ...]:
        """Speakers by number; who is put on both sides is on none."""
        chosen = dict.fromkeys(number for number in numbers if 1 <= number <= len(speakers))
        return tuple(speakers[number - 1] for number in chosen if number not in set(others))

    agree, disagree = named(answer.agree, answer.disagree), named(answer.disagree, answer.agree)
    statement = truncate(without_citations(answer.statement), 300)
    if not (answer.divided and statement and agree and disagree):
        return None
    explanation = truncate(without_citations(answer.explanation), EXPLANATION[1])
    return CruxDraft(statement, explanation, agree, disagree, _known(answer.claims, shown))
