"""Key findings in people's own words: what they voted for, then what most speak about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.apps.report.local.messages import message
from holdfast.apps.report.local.summaries import (
    agreement,
    are_about,
    is_clear,
    is_recorded,
    is_rejected,
    is_voted,
    leading_groups,
    mentioned,
    stated,
)
from holdfast.apps.report.local.vote_findings import vote_findings
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.opinion import VoteEvidence
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Topic

FEWEST, MOST = 5, 8
"""How many findings there are about everything, if there are enough claims."""
_FEW = 3
"""Of fewer findings, those whose example is about something else are better than none."""


def overview(
    topics: Sequence[Topic],
    groups: Mapping[str, Sequence[ClaimGroup]],
    language: str,
    votes: VoteEvidence | None = None,
) -> list[Sentence]:
    """What people voted for, where they voted. Else, or if that is little, the topics most people
    speak about, each with the claim that most stand behind."""
    voted = vote_findings(votes, language) if votes else []
    if len(voted) >= FEWEST:
        return voted
    cited = {id for finding in voted for id in finding.cites} | set(votes.headline if votes else ())
    raised = [
        finding
        for finding in _Raised(topics, groups, language).findings()
        if cited.isdisjoint(finding.cites)
    ]
    return voted + (raised[: MOST - len(voted)] if voted else raised)


class _Raised:
    """The topics most people speak about, then further claims up to five."""

    def __init__(
        self, topics: Sequence[Topic], groups: Mapping[str, Sequence[ClaimGroup]], language: str
    ) -> None:
        self._groups = groups
        self._language = language
        self._people = {
            topic.id: len({s for group in groups.get(topic.id, ()) for s in group.speakers})
            for topic in topics
        }
        unnamed = message(language, "general remarks")
        spoken = [topic for topic in topics if self._people[topic.id] and topic.id != OTHER]
        named = [topic for topic in spoken if not topic.name.startswith(unnamed)] or spoken
        self._topics = sorted(
            named, key=lambda topic: (-self._people[topic.id], topics.index(topic))
        )[:MOST]

    def findings(self) -> list[Sentence]:
        if is_recorded([group for those in self._groups.values() for group in those]):
            return self._in_speech()
        examples = {topic.id: self._examples(topic) for topic in self._topics}
        if sum(map(bool, examples.values())) < _FEW:
            for topic in self._topics:
                examples[topic.id] = examples[topic.id] or self._leading(topic, 1)
        first = [
            self._finding(topic, examples[topic.id][0])
            for topic in self._topics
            if examples[topic.id]
        ]
        further = [
            Sentence(
                topic.name + message(self._language, "colon") + stated(group, self._language),
                (group.id,),
            )
            for rank in (1, 2)
            for topic in self._topics
            for group in examples[topic.id][rank : rank + 1]
        ]
        return first + further[: max(0, FEWEST - len(first))]

    def _leading(self, topic: Topic, count: int) -> list[ClaimGroup]:
        names = {subtopic.id: topic.name for subtopic in topic.subtopics}
        return leading_groups(self._groups[topic.id], count, names)

    def _examples(self, topic: Topic) -> list[ClaimGroup]:
        """Up to three claims that stand for a topic: only such as are about what it is named
        for."""
        leading = self._leading(topic, 3)
        about = are_about([group.statement for group in leading], [topic.name] * len(leading))
        return [
            group
            for group, is_about in zip(leading, about, strict=True)
            if is_about and not is_rejected(group)
        ]

    def _finding(self, topic: Topic, group: ClaimGroup) -> Sentence:
        people = self._people[topic.id]
        claim = stated(group, self._language)
        text = message(
            self._language,
            "raised by one" if people == 1 else _how(group, self._groups[topic.id]),
            topic=topic.name,
            people=people,
            claim=claim,
        )
        return Sentence(text, (group.id,))

    # --- recorded speech --------------------------------------------------------------------------

    def _in_speech(self) -> list[Sentence]:
        """Each topic with an example where somebody clearly claims something about its name, else
        with what several people mention: most recorded sentences need those around them."""
        findings: list[Sentence] = []
        for topic in self._topics:
            clear = [group for group in self._leading(topic, 3) if is_clear(group, topic.name)]
            if clear:
                findings.append(self._finding(topic, clear[0]))
            elif topic.mentions:
                findings.append(self._mentioned(topic))
        return findings

    def _mentioned(self, topic: Topic) -> Sentence:
        everybody = {
            s for those in self._groups.values() for group in those for s in group.speakers
        }
        phrases, cites = mentioned(topic, self._groups[topic.id], self._language)
        text = message(
            self._language,
            "raised with mentions",
            topic=topic.name,
            people=self._people[topic.id],
            all=len(everybody),
            phrases=phrases,
        )
        return Sentence(text, cites)


def _how(group: ClaimGroup, others: Sequence[ClaimGroup]) -> str:
    """What makes a claim the one that is told: no other is agreed with as surely, or said as
    often."""
    if is_voted(group):
        return "agreed" if agreement(group) == max(map(agreement, others)) else "example"
    most = max(len(other.speakers) for other in others)
    return "raised" if len(group.speakers) == most > 1 else "example"
