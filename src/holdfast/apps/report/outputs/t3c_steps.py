"""The results of steps in the shapes that Talk to the City's worker keeps in its state
(`completedResults.{step}.data`): topics by name, claims as a tree, and the tree again, sorted and
without duplicates.

It knows topics by name only, so ids are left out. What `comments`, `opinions` and `report` bring
has no place there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim
from holdfast.apps.report.model.comment import CommentSet
from holdfast.apps.report.model.crux import Cruxes
from holdfast.apps.report.model.document import Matrix, ReportCrux
from holdfast.apps.report.model.summary import Summaries
from holdfast.apps.report.model.taxonomy import Clustering, Subtopic, Topic
from holdfast.apps.report.outputs.t3c_cruxes import crux_tables
from holdfast.apps.report.sorting import Sorted
from holdfast.apps.report.step_inputs import with_other

Json = dict[str, Any]
T = TypeVar("T")
SKIPPED = "null"
"""The result of a step that was not wanted."""


def t3c_step_results(values: Mapping[str, str], language: str = "") -> Json:
    """From the stored results of steps, by name, to the `data` of each. `language` is that of the
    request.

    The claims themselves are items of their step: they are shown as soon as they are sorted, which
    happens while they come in."""
    values = {step: value for step, value in values.items() if value != SKIPPED}
    if "clustering" not in values:
        return {}
    clustering = _decoded(values, "clustering", Clustering)
    results: Json = {"clustering": [_topic(topic) for topic in clustering.topics]}
    if "sort_and_deduplicate" not in values:
        return results
    source = _decoded(values, "comments", CommentSet)
    tree = _Tree(
        with_other(clustering, language or source.language),
        _decoded(values, "sort_and_deduplicate", Sorted),
    )
    results |= {"claims": tree.claims(), "sort_and_deduplicate": tree.sorted()}
    if "summaries" in values:
        results["summaries"] = tree.summaries(_decoded(values, "summaries", Summaries))
    if "cruxes" in values:
        results["cruxes"] = tree.cruxes(_decoded(values, "cruxes", Cruxes))
    return results


def _decoded(values: Mapping[str, str], step: str, kind: type[T]) -> T:
    return msgspec.json.decode(values[step], type=kind)


def _topic(topic: Topic) -> Json:
    return {
        "topicName": topic.name,
        "topicShortDescription": topic.description,
        "subtopics": [
            {"subtopicName": subtopic.name, "subtopicShortDescription": subtopic.description}
            for subtopic in topic.subtopics
        ],
    }


class _Tree:
    """Claims below the names of their topics and subtopics."""

    def __init__(self, topics: Sequence[Topic], sorted_claims: Sorted) -> None:
        self._topics = sorted_claims.in_order(topics)
        self._groups = sorted_claims.by_subtopic()
        order = {id: at for at, id in enumerate(sorted_claims.subtopics)}
        self._subtopics = {
            topic.id: sorted(
                (subtopic for subtopic in topic.subtopics if subtopic.id in order),
                key=lambda subtopic: order[subtopic.id],
            )
            for topic in self._topics
        }

    def claims(self) -> Json:
        """`{topic: {total, subtopics: {subtopic: {total, claims}}}}`, nothing merged."""
        return {
            topic.name: {
                "total": len(list(_members(self._groups_of(topic)))),
                "subtopics": {
                    subtopic.name: self._all_claims(topic, subtopic)
                    for subtopic in self._subtopics[topic.id]
                },
            }
            for topic in self._topics
        }

    def _all_claims(self, topic: Topic, subtopic: Subtopic) -> Json:
        claims = [_claim(member, topic, subtopic) for member in _members(self._groups[subtopic.id])]
        return {"total": len(claims), "claims": claims}

    def sorted(self) -> list[Any]:
        """`[[topic, {topics: [[subtopic, {claims, speakers, counts}]], speakers, counts}]]`."""
        return [
            [
                topic.name,
                {
                    "topics": [
                        [subtopic.name, self._merged_claims(topic, subtopic)]
                        for subtopic in self._subtopics[topic.id]
                    ],
                    **_counted(self._groups_of(topic)),
                },
            ]
            for topic in self._topics
        ]

    def _merged_claims(self, topic: Topic, subtopic: Subtopic) -> Json:
        groups = self._groups[subtopic.id]
        return {
            "claims": [_merged(group, topic, subtopic) for group in groups],
            **_counted(groups),
        }

    def summaries(self, summaries: Summaries) -> list[Json]:
        written = {summary.topic: summary.sentences for summary in summaries.topics}
        return [
            {
                "topicName": topic.name,
                "summary": " ".join(sentence.text for sentence in written[topic.id]),
            }
            for topic in self._topics
            if topic.id in written
        ]

    def cruxes(self, cruxes: Cruxes) -> Json:
        scored = [ReportCrux.of(crux) for crux in cruxes.cruxes]
        matrix = Matrix(cruxes.speakers, tuple(crux.id for crux in scored), cruxes.matrix)
        everybody = (member.speaker for topic in self._topics for member in self._of(topic))
        called = {topic.id: topic.name for topic in self._topics} | {
            subtopic.id: subtopic.name for topic in self._topics for subtopic in topic.subtopics
        }
        people = {
            topic.id: (topic.name, len({member.speaker for member in self._of(topic)}))
            for topic in self._topics
        }
        return crux_tables(scored, matrix, everybody, called, people)

    def _groups_of(self, topic: Topic) -> list[ClaimGroup]:
        return [group for sub in self._subtopics[topic.id] for group in self._groups[sub.id]]

    def _of(self, topic: Topic) -> Iterator[QuotedClaim]:
        return _members(self._groups_of(topic))


def _members(groups: Iterable[ClaimGroup]) -> Iterator[QuotedClaim]:
    return (member for group in groups for member in group.members)


def _claim(member: QuotedClaim, topic: Topic, subtopic: Subtopic, statement: str = "") -> Json:
    return {
        "claim": statement or member.statement,
        "quote": member.quote,
        "speaker": member.speaker,
        "topicName": topic.name,
        "subtopicName": subtopic.name,
        "commentId": member.comment,
    }


def _merged(group: ClaimGroup, topic: Topic, subtopic: Subtopic) -> Json:
    first, *others = group.members
    duplicates = [{**_claim(member, topic, subtopic), "duplicated": True} for member in others]
    claim = _claim(first, topic, subtopic, group.statement)
    return {**claim, "duplicates": duplicates, "duplicated": False}


def _counted(groups: Sequence[ClaimGroup]) -> Json:
    speakers = list(dict.fromkeys(member.speaker for member in _members(groups)))
    return {"speakers": speakers, "counts": {"claims": len(groups), "speakers": len(speakers)}}
