"""Cruxes in the format of Talk to the City: by subtopic, by topic, and speaker by speaker."""

from __future__ import annotations

from itertools import chain
from typing import Any

from holdfast.apps.report.model.crux import Basis, Stance
from holdfast.apps.report.model.document import Report, ReportCrux
from holdfast.apps.report.outputs.traversal import topic_names

Json = dict[str, Any]


def add_ons(report: Report) -> Json:
    """`subtopicCruxes`, `topicScores` and `speakerCruxMatrix`."""
    speakers, called = _speakers(report), topic_names(report)
    return {
        "subtopicCruxes": [_crux(crux, speakers, called) for crux in report.cruxes],
        "topicScores": _topic_scores(report),
        "speakerCruxMatrix": _matrix(report, speakers, called),
    }


def _speakers(report: Report) -> dict[str, str]:
    """Name → `id:name`. People who only voted come after those who wrote."""
    wrote = (comment.speaker for comment in report.comments)
    counted = (
        name
        for crux in report.cruxes
        for name in (*crux.agreeing, *crux.disagreeing, *crux.undecided)
    )
    names = dict.fromkeys(chain(wrote, counted, report.matrix.speakers))
    return {name: f"{number}:{name}" for number, name in enumerate(names)}


def _crux(crux: ReportCrux, speakers: dict[str, str], called: dict[str, str]) -> Json:
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


def _topic_scores(report: Report) -> list[Json]:
    scores = []
    for topic in report.topics:
        controversies = [crux.controversy for crux in report.cruxes if crux.topic == topic.id]
        if controversies:
            mean = sum(controversies) / len(controversies)
            counts = {"subtopicCount": len(controversies), "totalSpeakers": topic.people}
            scores.append({"topic": topic.name, "averageControversy": mean, **counts})
    return scores


def _matrix(report: Report, speakers: dict[str, str], called: dict[str, str]) -> Json:
    cruxes = {crux.id: crux for crux in report.cruxes}
    shown = [cruxes[id] for id in report.matrix.cruxes]
    return {
        "speakers": [speakers[name] for name in report.matrix.speakers],
        "cruxLabels": [
            f"{called.get(crux.topic, crux.topic)} → {called.get(crux.subtopic, crux.subtopic)}"
            for crux in shown
        ],
        "matrix": [[_position(cell) for cell in row] for row in report.matrix.cells],
    }


def _position(cell: str) -> str:
    return cell if cell in (Stance.AGREE, Stance.DISAGREE) else "no_position"
