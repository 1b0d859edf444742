"""The matrix of people and cruxes, people who stand alike beside one another."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.report.model.document import Matrix, ReportCrux
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.page.charts.order import by_likeness
from holdfast.apps.report.page.content import PageContent

ROWS_SHOWN = 200
GLYPHS = {Stance.AGREE: "✓", Stance.DISAGREE: "✗", Stance.UNCLEAR: "·"}
_VALUES = {Stance.AGREE: 1.0, Stance.DISAGREE: -1.0}


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    cells: tuple[str, ...]

    @property
    def positions(self) -> int:
        return sum(cell in _VALUES for cell in self.cells)


@dataclass(frozen=True, slots=True)
class MatrixTable:
    cruxes: list[ReportCrux]
    people: list[Person]
    left: int
    """People for whom there is no room; the file has them all."""

    @property
    def silent(self) -> int:
        return sum(not person.positions for person in self.people)


def table(matrix: Matrix, content: PageContent) -> MatrixTable | None:
    """What is shown of the matrix: everybody, or the people with most positions if there are very
    many."""
    known = {crux.id: crux for crux in content.report.cruxes}
    columns = [at for at, id in enumerate(matrix.cruxes) if id in known]
    if not columns or not matrix.speakers:
        return None
    people = [
        Person(name, tuple(row[at] for at in columns))
        for name, row in zip(matrix.speakers, matrix.cells, strict=True)
    ]
    most = sorted(people, key=lambda person: -person.positions)[:ROWS_SHOWN]
    values = [
        [_VALUES.get(Stance(cell), 0.0) if cell else 0.0 for cell in person.cells]
        for person in most
    ]
    ordered = [most[at] for at in by_likeness(values)]
    return MatrixTable(
        [known[matrix.cruxes[at]] for at in columns], ordered, len(people) - len(ordered)
    )
