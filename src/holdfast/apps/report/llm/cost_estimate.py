"""What a report will cost, before it is made: arithmetic over the real comments and the real
prompts.

Comments are batched here as they will be batched then. What a model will say is not known: how much
it usually says is below, in tokens. Answers that are kept already cost nothing and are not
subtracted, so this is rather too much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from holdfast.apps.report.llm import answers, assignment, extraction, grouping, summaries
from holdfast.apps.report.llm.batching import BatchSize
from holdfast.apps.report.llm.injection import looks_like_injection
from holdfast.apps.report.llm.proposed_topics import sample_batches, topic_instructions
from holdfast.apps.report.llm.questions import system_prompt
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.estimate import Estimate, StepEstimate
from holdfast.model.tokens import estimate_tokens as tokens
from holdfast.ports.language_model import LanguageModel, Question

MOST_TOPICS = 10
SUBTOPICS = 3
TOPIC, SUBTOPIC = 55, 60
"""Name and description, as JSON."""
PLACE = 18
"""A comment's subtopics."""
SENTENCE, MOST_CLAIMS = 28, 8
"""Tokens of a comment for each claim that it makes, and how many a long one makes at most."""
CLAIM = 28
"""A claim without its quote."""
STATEMENT = 28
"""A claim in the lists that later steps are given."""
MEMBER = 8
MERGED = 0.75
"""Groups for each claim."""
LOST_QUOTES = 0.03
SUMMARY = 250
CRUX = 120
SPEAKER = 12


def estimate(
    comments: Sequence[Comment], brief: Brief, model: LanguageModel, cruxes: bool
) -> Estimate:
    """What every step will take, if nothing is known yet."""
    costs = _Costs(comments, brief, model)
    steps = {
        "clustering": costs.clustering(),
        "claims": costs.claims(),
        "sort_and_deduplicate": costs.groups(),
        "summaries": costs.summaries(),
    }
    if cruxes:
        steps["cruxes"] = costs.cruxes()
    return Estimate(
        model.name,
        len(comments),
        tuple(_priced(name, calls, model) for name, calls in steps.items()),
    )


@dataclass(frozen=True, slots=True)
class _Calls:
    """So many calls, each with instructions and data in, and an answer out."""

    number: float
    instructions: float
    data: float
    """Of all of them together, and so is the answer."""
    answer: float


def _priced(step: str, calls: Iterable[_Calls], model: LanguageModel) -> StepEstimate:
    listed = list(calls)
    read = round(sum(group.number * group.instructions + group.data for group in listed))
    written = round(sum(group.answer for group in listed))
    return StepEstimate(
        step,
        round(sum(group.number for group in listed)),
        read,
        written,
        model.price(read, written),
    )


class _Costs:
    def __init__(self, comments: Sequence[Comment], brief: Brief, model: LanguageModel) -> None:
        self._brief = brief
        self._model = model
        self._texts = list(dict.fromkeys(comment.text for comment in comments))
        self._speakers = len({comment.speaker for comment in comments})
        usual = max(2, min(MOST_TOPICS, round(len(self._texts) ** 0.5 / 2)))
        self._topics = brief.topics or max(usual, len(brief.given))
        self._subtopics = self._topics * SUBTOPICS
        self._taxonomy = self._topics * TOPIC + self._subtopics * SUBTOPIC
        self._claims = sum(
            max(1, min(MOST_CLAIMS, tokens(text) / SENTENCE)) for text in self._texts
        )
        self._groups = self._claims * MERGED

    def clustering(self) -> Iterable[_Calls]:
        batches = sample_batches(self._texts)
        read = sum(tokens(text) + 2 for batch in batches for text in batch)
        instructions = self._instructions(
            "clustering", answers.TopicsAnswer, topic_instructions(self._brief)
        )
        yield _Calls(len(batches), instructions, read, len(batches) * self._taxonomy)
        if len(batches) > 1:
            instructions = self._instructions(
                "merging", answers.TopicsAnswer, topic_instructions(self._brief)
            )
            yield _Calls(1, instructions, len(batches) * self._taxonomy, self._taxonomy)
        sizes = [tokens(text) + assignment.AROUND for text in self._texts]
        instructions = self._instructions("assignment", answers.AssignmentsAnswer) + self._taxonomy
        calls = self._batched_calls(
            sizes, assignment.COMMENTS_PER_CALL, assignment.COMMENTS_PER_CALL.tokens
        )
        yield _Calls(calls, instructions, sum(sizes), len(sizes) * PLACE)

    def claims(self) -> Iterable[_Calls]:
        sizes = [tokens(text) + extraction.AROUND for text in self._texts]
        usual = sum(sizes) / max(1, len(sizes))
        instructions = self._instructions("extraction", answers.ExtractionAnswer) + self._taxonomy
        calls = self._batched_calls(sizes, extraction.COMMENTS_PER_CALL, extraction.LONG)
        yield _Calls(calls, instructions, sum(sizes), self._claims * (CLAIM + min(SENTENCE, usual)))
        lost = self._claims * LOST_QUOTES
        instructions = self._instructions("requote", answers.QuotesAnswer)
        yield _Calls(lost / 3, instructions, lost * (usual + 2 * STATEMENT), lost * STATEMENT)

    def groups(self) -> Iterable[_Calls]:
        claims_each = self._claims / self._subtopics
        parts = (
            1
            if claims_each <= grouping.MOST
            else 1 + claims_each / ((grouping.MOST + grouping.LEAST) / 2)
        )
        calls = self._subtopics * parts if claims_each >= 2 else self._subtopics * claims_each / 2
        listed = self._claims + (self._groups if parts > 1 else 0)
        answer = listed * MEMBER + self._groups * CLAIM
        yield _Calls(
            calls, self._instructions("dedup", answers.GroupsAnswer), listed * STATEMENT, answer
        )

    def summaries(self) -> Iterable[_Calls]:
        groups = self._topics * min(summaries.MOST_GROUPS, self._groups / self._topics)
        instructions = self._instructions("summaries", answers.SentencesAnswer)
        yield _Calls(
            self._topics, instructions, groups * (STATEMENT + MEMBER), self._topics * SUMMARY
        )
        groups = self._topics * min(summaries.GROUPS_OF_A_TOPIC, self._groups / self._topics)
        instructions = self._instructions("overview", answers.SentencesAnswer)
        yield _Calls(1, instructions, groups * STATEMENT + self._topics * SUMMARY, 2 * SUMMARY)

    def cruxes(self) -> Iterable[_Calls]:
        groups_each = min(summaries.MOST_GROUPS, self._groups / self._subtopics)
        speakers = min(summaries.MOST_SPEAKERS, self._speakers / self._topics)
        instructions = self._instructions("crux", answers.CruxAnswer)
        data = self._subtopics * (groups_each * STATEMENT + speakers * SPEAKER)
        yield _Calls(self._subtopics, instructions, data, self._subtopics * (CRUX + speakers))

    def _instructions(self, task: str, shape: type[BaseModel], *more: str) -> int:
        question = Question(system_prompt(self._brief, task, *more), "", task)
        return self._model.input_tokens(question, shape)

    def _batched_calls(self, sizes: Sequence[int], size: BatchSize, long: int) -> int:
        """Calls that so many comments of such sizes come to."""
        alone = sum(
            size_of_text > long or looks_like_injection(text)
            for size_of_text, text in zip(sizes, self._texts, strict=True)
        )
        calls, items, room = alone, size.items, 0
        for size_of_text, text in zip(sizes, self._texts, strict=True):
            if size_of_text > long or looks_like_injection(text):
                continue
            if items == size.items or size_of_text > room:
                calls, items, room = calls + 1, 0, size.tokens
            items, room = items + 1, room - size_of_text
        return calls
