"""Files with one column for each question: topics are found for each question apart, and kept apart
in the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.apps.report.analyst import Analyst
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Topic
from holdfast.ports.context import Context


def questions_of(comments: Iterable[Comment]) -> list[str]:
    """The questions that comments answer, in the order of the file; none where there is one."""
    return list(dict.fromkeys(comment.question for comment in comments if comment.question))


async def cluster_questions(
    analyst: Analyst, comments: Sequence[Comment], brief: Brief, ctx: Context
) -> Clustering:
    """The topics of all comments, those of each question apart if there are several."""
    questions = questions_of(comments)
    if not questions:
        return await analyst.cluster(comments, brief, ctx)
    answers = {
        question: [comment for comment in comments if comment.question == question]
        for question in questions
    }

    async def cluster(question: str, ctx: Context) -> Clustering:
        return await analyst.cluster(answers[question], replace(brief, question=question), ctx)

    clusterings: list[Clustering] = await ctx.map(cluster, questions, concurrency=1)
    return _joined(zip(questions, clusterings, strict=True))


def _joined(by_question: Iterable[tuple[str, Clustering]]) -> Clustering:
    """One clustering, its topics numbered through, each with its question."""
    topics: list[Topic] = []
    placements: list[Placement] = []
    positions: list[tuple[str, float, float]] = []
    notes: list[str] = []
    for question, clustering in by_question:
        moved: dict[str, str] = {OTHER: OTHER}
        for topic in clustering.topics:
            id = f"t{len(topics) + 1}"
            parts = tuple(
                replace(subtopic, id=f"{id}.{number}")
                for number, subtopic in enumerate(topic.subtopics, 1)
            )
            old = (subtopic.id for subtopic in topic.subtopics)
            moved |= dict(zip(old, (part.id for part in parts), strict=True))
            topics.append(replace(topic, id=id, subtopics=parts, question=question))
        placements += [
            replace(part, subtopic=moved.get(part.subtopic, OTHER))
            for part in clustering.placements
        ]
        positions += clustering.map
        notes += clustering.notes
    return Clustering(
        tuple(topics), tuple(placements), tuple(positions), tuple(dict.fromkeys(notes))
    )
