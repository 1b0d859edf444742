"""A pause for people between topics and claims: topics go out as a file, and come back edited.

A subtopic of the file lists the `ids` it stands for, so people can rename, reorder and move
subtopics, and merge two by putting their ids together. Ids that nobody lists go to "other"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic
from holdfast.apps.report.request import ReviewedTopic
from holdfast.apps.report.translations import Translations
from holdfast.errors import InvalidInput

FILE = "topics.json"
"""What people edit."""
HOW = (
    "Change names and descriptions, move subtopics, or merge two by putting their ids into one; "
    "comments of ids that are left out go to Other. Then run the same command again."
)


def to_file(clustering: Clustering) -> bytes:
    """The topics as people edit them, with how many comments each subtopic has."""
    sizes = Counter(subtopic for _, subtopic in _distinct(clustering.placements))
    topics = [
        {
            **({"question": topic.question} if topic.question else {}),
            "name": topic.name,
            "description": topic.description,
            "subtopics": [
                {
                    "ids": [subtopic.id],
                    "name": subtopic.name,
                    "description": subtopic.description,
                    "comments": sizes[subtopic.id],
                }
                for subtopic in topic.subtopics
            ],
        }
        for topic in clustering.topics
    ]
    document = msgspec.json.encode({"how": HOW, "topics": topics})
    return msgspec.json.format(document, indent=2) + b"\n"


def from_file(data: bytes, filename: str) -> list[Any]:
    """The topics in an edited file, as fields of a request. Raises InvalidInput if it is none."""
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{filename} is not valid JSON any more: {error}. Correct it, or delete it to begin "
            "the review again."
        ) from None
    topics = document.get("topics") if isinstance(document, dict) else None
    if not isinstance(topics, list) or not topics:
        raise InvalidInput(
            f"{filename} has no list of topics; delete it to begin the review again."
        )
    return topics


def apply_review(
    clustering: Clustering, reviewed: Sequence[ReviewedTopic], language: str
) -> Clustering:
    """The clustering with the topics that people made of it, and a note on that in the language of
    the report. Raises InvalidInput for an id that is not there, or is there twice."""
    known = {subtopic.id for topic in clustering.topics for subtopic in topic.subtopics}
    listed = [id for topic in reviewed for subtopic in topic.subtopics for id in subtopic.ids]
    for id, times in Counter(listed).items():
        if id not in known:
            raise InvalidInput(f"{FILE} lists the id {id!r}, which no subtopic has.")
        if times > 1:
            raise InvalidInput(
                f"{FILE} lists the id {id!r} {times} times: a subtopic is in one place."
            )
    topics, moved = _renumbered(reviewed)
    placements = {
        replace(placement, subtopic=moved.get(placement.subtopic, OTHER)): None
        for placement in clustering.placements
    }
    names = {topic.name for topic in clustering.topics}
    note = Translations(language)(
        "note.reviewed",
        before=len(clustering.topics),
        after=len(topics),
        same=sum(topic.name in names for topic in topics),
    )
    return Clustering(topics, tuple(placements), clustering.map, (*clustering.notes, note))


def _renumbered(reviewed: Sequence[ReviewedTopic]) -> tuple[tuple[Topic, ...], dict[str, str]]:
    """Topics with ids of ours again, and where each old subtopic went."""
    topics: list[Topic] = []
    moved: dict[str, str] = {}
    for number, topic in enumerate(reviewed, 1):
        subtopics: list[Subtopic] = []
        for part, subtopic in enumerate(topic.subtopics, 1):
            id = f"t{number}.{part}"
            subtopics.append(Subtopic(id, subtopic.name, subtopic.description))
            moved |= dict.fromkeys(subtopic.ids, id)
        topics.append(
            Topic(f"t{number}", topic.name, topic.description, tuple(subtopics), topic.question)
        )
    return tuple(topics), moved


def _distinct(placements: Sequence[Placement]) -> set[tuple[str, str]]:
    return {(placement.comment, placement.subtopic) for placement in placements}
