"""Whether cruxes say what the people behind them say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.apps.report.model.crux import controversy, level
from holdfast.apps.report.model.document import Report, ReportCrux
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.outputs.traversal import claim_positions

ROUNDING = 0.0001
STANCES = (*Stance, "")


def crux_problems(report: Report) -> Iterator[str]:
    """Cruxes one by one, then the matrix."""
    subtopics = {subtopic.id: topic.id for topic in report.topics for subtopic in topic.subtopics}
    claims = {position.claim.id for position in claim_positions(report)}
    for crux in report.cruxes:
        if subtopics.get(crux.subtopic) != crux.topic:
            yield (
                f"Crux {crux.id} belongs to subtopic {crux.subtopic!r}, which topic "
                f"{crux.topic!r} does not have."
            )
        for id in crux.cites:
            if id not in claims:
                yield f"Crux {crux.id} cites claim {id!r}, which is not there."
        yield from _people_problems(crux)
        yield from _score_problems(crux)
    yield from _mean_problems(report)
    yield from _vote_problems(report)
    yield from _matrix_problems(report)


def _people_problems(crux: ReportCrux) -> Iterator[str]:
    sides = {"agree": crux.agreeing, "disagree": crux.disagreeing, "unclear": crux.undecided}
    for name, times in Counter(person for side in sides.values() for person in side).items():
        if times > 1:
            yield f"Crux {crux.id} counts {name!r} {times} times."
    for side, people in sides.items():
        stated = getattr(crux, side)
        if len(people) > stated:
            yield f"Crux {crux.id} says {stated} {side}, but names {len(people)}."


def _score_problems(crux: ReportCrux) -> Iterator[str]:
    people = crux.agree + crux.disagree + crux.unclear
    scores = {
        "agreement": crux.agree / (people or 1),
        "disagreement": crux.disagree / (people or 1),
        "controversy": controversy(crux.agree, crux.disagree, people),
    }
    for name, score in scores.items():
        stated = getattr(crux, name)
        if abs(stated - score) > ROUNDING:
            yield f"Crux {crux.id} says {name} {stated:.4f}, but it is {score:.4f}."
    if crux.level != level(crux.controversy):
        yield (
            f"Crux {crux.id} is called {crux.level!r}, but with its score it is "
            f"{level(crux.controversy)!r}."
        )


def _mean_problems(report: Report) -> Iterator[str]:
    for topic in report.topics:
        scores = [crux.controversy for crux in report.cruxes if crux.topic == topic.id]
        mean = sum(scores) / len(scores) if scores else None
        if (topic.controversy is None) != (mean is None) or abs(
            (topic.controversy or 0) - (mean or 0)
        ) > ROUNDING:
            yield (
                f"Topic {topic.id} says controversy {topic.controversy}, but the mean of its "
                f"cruxes is {mean}."
            )


def _vote_problems(report: Report) -> Iterator[str]:
    for claim in (position.claim for position in claim_positions(report)):
        if (votes := claim.votes) is not None:
            score = controversy(
                votes.agrees, votes.disagrees, votes.agrees + votes.disagrees + votes.passes
            )
            if abs(votes.controversy - score) > ROUNDING:
                yield (
                    f"Claim {claim.number} says controversy {votes.controversy:.4f}, but its "
                    f"votes make {score:.4f}."
                )


def _matrix_problems(report: Report) -> Iterator[str]:
    matrix = report.matrix
    if matrix.cruxes != tuple(crux.id for crux in report.cruxes):
        yield "The matrix does not have the cruxes of the report as its columns."
        return
    if len(matrix.cells) != len(matrix.speakers) or any(
        len(row) != len(matrix.cruxes) for row in matrix.cells
    ):
        yield f"The matrix is not {len(matrix.speakers)} speakers by {len(matrix.cruxes)} cruxes."
        return
    for speaker in (name for name, times in Counter(matrix.speakers).items() if times > 1):
        yield f"The matrix has more than one row for {speaker!r}."
    for at, crux in enumerate(report.cruxes):
        cells = {
            speaker: row[at]
            for speaker, row in zip(matrix.speakers, matrix.cells, strict=True)
            if row[at]
        }
        yield from _column_problems(crux, cells)


def _column_problems(crux: ReportCrux, cells: dict[str, str]) -> Iterator[str]:
    """A column says what the crux says."""
    sides = {
        Stance.AGREE: crux.agreeing,
        Stance.DISAGREE: crux.disagreeing,
        Stance.UNCLEAR: crux.undecided,
    }
    named = {name: str(stance) for stance, people in sides.items() for name in people}
    for name in sorted(named.keys() | cells.keys()):
        stated, shown = named.get(name, ""), cells.get(name, "")
        if shown not in STANCES:
            yield f"The matrix has the unknown word {shown!r} for {name!r} and crux {crux.id}."
        elif stated != shown:
            yield (
                f"On crux {crux.id} the matrix has {shown or 'nothing'} for {name!r}, the crux "
                f"{stated or 'nothing'}."
            )
