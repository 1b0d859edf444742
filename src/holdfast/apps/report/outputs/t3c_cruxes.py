"""Cruxes in the format of Talk to the City: by subtopic, by topic, and speaker by speaker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.apps.report.model.crux import Basis
from holdfast.apps.report.model.document import Matrix, Report, ReportCrux
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.outputs.traversal import topic_names

Json = dict[str, Any]


def add_ons(report: Report) -> Json:
    """`subtopicCruxes`, `topicScores` and `speakerCruxMatrix`."""
    return crux_tables(
        report.cruxes,
        report.matrix,
        (comment.speaker for comment in report.comments),
        topic_names(report),
        {topic.id: (topic.name, topic.people) for topic in report.topics},
    )


def crux_tables(
    cruxes: Sequence[ReportCrux],
    matrix: Matrix,
    wrote: Iterable[str],
    called: Mapping[str, str],
    people: Mapping[str, tuple[str, int]],
) -> Json:
    """The same from its parts: who wrote, what ids are called, and by topic its name and how many
    people speak in it."""
    speakers = _speakers(cruxes, matrix, wrote)
    return {
        "subtopicCruxes": [_crux(crux, speakers, called) for crux in cruxes],
        "topicScores": _topic_scores(cruxes, people),
        "speakerCruxMatrix": _matrix(cruxes, matrix, speakers, called),
    }


def _speakers(cruxes: Sequence[ReportCrux], matrix: Matrix, wrote: Iterable[str]) -> dict[str, str]:
    """Name → `id:name`. People who only voted come after those who wrote."""
    counted = (
        name for crux in cruxes for name in (*crux.agreeing, *crux.disagreeing, *crux.undecided)
    )
    names = dict.fromkeys(chain(wrote, counted, matrix.speakers))
    return {name: f"{number}:{name}" for number, name in enumerate(names)}


def _crux(crux: ReportCrux, speakers: Mapping[str, str], called: Mapping[str, str]) -> Json:
    return {
        "topic": called.get(crux.topic, crux.topic),
        "subtopic": called.get(crux.subtopic, crux.subtopic),
        "cruxClaim": crux.statement,
        "agree": [speakers[name] for name in crux.agreeing],
        "disagree": [speakers[name] for name in crux.disagreeing],
        "no_clear_position": [speakers[name] for name in crux.undecided],
        "explanation": _explanation(crux),
        "agreementScore": crux.agreement,
        "disagreementScore": crux.disagreement,
        "controversyScore": crux.controversy,
        "speakersInvolved": crux.agree + crux.disagree,
        "totalSpeakersInSubtopic": crux.agree + crux.disagree + crux.unclear,
    }


def _explanation(crux: ReportCrux) -> str:
    """The format has no word for what a crux rests on: it is said here."""
    if crux.basis == Basis.VOTES:
        counted = (
            f"People voted: {crux.agree} agree, {crux.disagree} disagree, {crux.unclear} pass."
        )
        return f"{counted} {crux.explanation}".rstrip()
    if crux.basis == Basis.TENSION:
        return f"A possible tension, not a finding. {crux.explanation}".rstrip()
    return crux.explanation


def _topic_scores(
    cruxes: Sequence[ReportCrux], people: Mapping[str, tuple[str, int]]
) -> list[Json]:
    scores = []
    for topic, (name, speakers) in people.items():
        controversies = [crux.controversy for crux in cruxes if crux.topic == topic]
        if controversies:
            mean = sum(controversies) / len(controversies)
            counts = {"subtopicCount": len(controversies), "totalSpeakers": speakers}
            scores.append({"topic": name, "averageControversy": mean, **counts})
    return scores


def _matrix(
    cruxes: Sequence[ReportCrux],
    matrix: Matrix,
    speakers: Mapping[str, str],
    called: Mapping[str, str],
) -> Json:
    known = {crux.id: crux for crux in cruxes}
    shown = [known[id] for id in matrix.cruxes]
    return {
        "speakers": [speakers[name] for name in matrix.speakers],
        "cruxLabels": [
            f"{called.get(crux.topic, crux.topic)} → {called.get(crux.subtopic, crux.subtopic)}"
            for crux in shown
        ],
        "matrix": [[_position(cell) for cell in row] for row in matrix.cells],
    }


def _position(cell: str) -> str:
    return cell if cell in (Stance.AGREE, Stance.DISAGREE) else "no_position"
