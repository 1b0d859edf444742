"""Ways through a report: claims and quotes with where they stand, and what ids are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.apps.report.model.document import (
    Quote,
    Report,
    ReportClaim,
    ReportSubtopic,
    ReportTopic,
)


@dataclass(frozen=True, slots=True)
class ClaimPosition:
    """A claim and where it stands."""

    topic: ReportTopic
    subtopic: ReportSubtopic
    claim: ReportClaim


def claim_positions(report: Report) -> Iterator[ClaimPosition]:
    """All claims, in the order of the report."""
    for topic in report.topics:
        for subtopic in topic.subtopics:
            for claim in subtopic.claims:
                yield ClaimPosition(topic, subtopic, claim)


def quotes(report: Report) -> Iterator[Quote]:
    """All quotes, in the order of the report."""
    for position in claim_positions(report):
        yield from position.claim.quotes


def quotes_of(topic: ReportTopic | ReportSubtopic) -> Iterator[Quote]:
    """The quotes of a topic or a subtopic."""
    subtopics = topic.subtopics if isinstance(topic, ReportTopic) else (topic,)
    return (quote for subtopic in subtopics for claim in subtopic.claims for quote in claim.quotes)


def topic_names(report: Report) -> dict[str, str]:
    """What the ids of topics and subtopics are called; subtopics win where both share one
    (`other`)."""
    topics = {topic.id: topic.name for topic in report.topics}
    return topics | {
        subtopic.id: subtopic.name for topic in report.topics for subtopic in topic.subtopics
    }
