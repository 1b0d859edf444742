"""From claims that arrive one comment at a time to groups in the order in which people read
them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from holdfast.apps.report.model.claim import ClaimGroup, Extraction, QuotedClaim
from holdfast.apps.report.model.taxonomy import OTHER, Placement, Subtopic, Topic
from holdfast.model.items import Items


@dataclass(frozen=True, slots=True)
class CompleteSubtopic:
    """A subtopic all of whose comments have been read, and its claims in the order of the file."""

    subtopic: str
    claims: tuple[QuotedClaim, ...]


@dataclass(frozen=True, slots=True)
class Sorted:
    """All groups, in the order of the report: topics, subtopics and claims with the most behind
    them first."""

    topics: tuple[str, ...]
    """Topic ids, in order."""
    subtopics: tuple[str, ...]
    """Subtopic ids, in order."""
    groups: tuple[ClaimGroup, ...]

    def in_order(self, topics: Iterable[Topic]) -> list[Topic]:
        known = {topic.id: topic for topic in topics}
        return [known[id] for id in self.topics]

    def by_subtopic(self) -> dict[str, list[ClaimGroup]]:
        groups: dict[str, list[ClaimGroup]] = {id: [] for id in self.subtopics}
        for group in self.groups:
            groups[group.subtopic].append(group)
        return groups

    def by_topic(self, topics: Iterable[Topic]) -> dict[str, list[ClaimGroup]]:
        """The groups of each topic, those with the most people first."""
        groups = self.by_subtopic()
        return {
            topic.id: sorted(_of_topic(topic, groups), key=lambda group: _order(group, "people"))
            for topic in topics
        }


class SubtopicCollector:
    """Tells which subtopics are complete while claims still come in, so that nobody waits for the
    last comment."""

    def __init__(self, placements: Sequence[Placement]) -> None:
        self._order: dict[str, int] = {}
        self._waiting: dict[str, set[str]] = {}
        self._subtopics: dict[str, list[str]] = {}
        self._claims: dict[str, list[QuotedClaim]] = {}
        for placement in placements:
            self._order.setdefault(placement.comment, len(self._order))
            self._waiting.setdefault(placement.subtopic, set()).add(placement.comment)
            self._subtopics.setdefault(placement.comment, []).append(placement.subtopic)

    async def collect(self, extractions: Items[Extraction]) -> AsyncIterator[CompleteSubtopic]:
        async for comment, extraction in extractions:
            for claim in extraction.claims:
                self._claims.setdefault(claim.subtopic, []).append(claim)
            for subtopic in dict.fromkeys(self._subtopics.get(comment, ())):
                self._waiting[subtopic].discard(comment)
                if not self._waiting[subtopic] and subtopic in self._claims:
                    yield self._complete(subtopic)
        # Comments that failed never come: the others need not wait for them.
        for subtopic in sorted(self._claims):
            yield self._complete(subtopic)

    def _complete(self, subtopic: str) -> CompleteSubtopic:
        claims = self._claims.pop(subtopic)
        claims.sort(key=lambda claim: (self._order[claim.comment], claim.start, claim.id))
        return CompleteSubtopic(subtopic, tuple(claims))


def sort(topics: Sequence[Topic], groups: Iterable[ClaimGroup], by: str) -> Sorted:
    """Topics, subtopics and groups ordered by people or by claims, question by question; the topic
    for the rest is last."""
    questions = [topic.question for topic in topics]
    order_of_question = {question: at for at, question in enumerate(questions)}
    by_subtopic: dict[str, list[ClaimGroup]] = {}
    for group in groups:
        by_subtopic.setdefault(group.subtopic, []).append(group)
    for members in by_subtopic.values():
        members.sort(key=lambda group: _order(group, by))
    used = [topic for topic in topics if _of_topic(topic, by_subtopic)]
    used.sort(
        key=lambda topic: (
            topic.id == OTHER,
            order_of_question[topic.question],
            *_weight(_of_topic(topic, by_subtopic), by),
            topic.id,
        )
    )
    ids = [subtopic.id for topic in used for subtopic in _subtopics(topic, by_subtopic, by)]
    return Sorted(
        tuple(topic.id for topic in used),
        tuple(ids),
        tuple(group for id in ids for group in by_subtopic[id]),
    )


def _subtopics(topic: Topic, groups: dict[str, list[ClaimGroup]], by: str) -> list[Subtopic]:
    used = [subtopic for subtopic in topic.subtopics if subtopic.id in groups]
    return sorted(used, key=lambda subtopic: (*_weight(groups[subtopic.id], by), subtopic.id))


def _of_topic(topic: Topic, groups: dict[str, list[ClaimGroup]]) -> list[ClaimGroup]:
    return [group for subtopic in topic.subtopics for group in groups.get(subtopic.id, ())]


def _order(group: ClaimGroup, by: str) -> tuple[object, ...]:
    """Equal claims come by votes, then by how central they are; the order of the file does not
    matter."""
    return (*_weight([group], by), -group.centrality, group.statement, group.id)


def _weight(groups: Sequence[ClaimGroup], by: str) -> tuple[int, int, int]:
    """The heaviest sorts first."""
    people = len({speaker for group in groups for speaker in group.speakers})
    claims = sum(len(group.members) for group in groups)
    agrees = sum(group.votes.agrees for group in groups if group.votes)
    return (-people, -claims, -agrees) if by == "people" else (-claims, -people, -agrees)
