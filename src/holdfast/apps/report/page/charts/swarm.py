"""A beeswarm: dots at their place on a line, moved away from it only so far that none covers
another.

Where hundreds have the same place (everybody agreed), a tower of them would be taller than the
page. Then, and only then, dots stand in columns, and a full column continues beside itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 150
EXACT = (7.0, 6.0, 5.0, 4.0)
"""Radii that are tried with every dot at its exact place."""
IN_COLUMNS = (4.0, 3.0, 2.2)
"""Radii that are tried in columns."""
BESIDE = 0.08
"""How far beside its place a dot may then stand, as a share of the width."""


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    """Away from the line: positive is above."""


@dataclass(frozen=True, slots=True)
class Swarm:
    radius: float
    dots: list[Dot]
    """In the order given."""

    @property
    def above(self) -> float:
        return max((dot.y for dot in self.dots), default=0)

    @property
    def below(self) -> float:
        return -min((dot.y for dot in self.dots), default=0)


def swarm(points: Sequence[tuple[float, bool]], width: float) -> Swarm:
    """`places`: a share of the width, and whether the dot belongs above the line. Dots get smaller
    until all fit."""
    for radius in EXACT:
        if dots := _dodged(points, width, radius):
            return Swarm(radius, dots)
    made = Swarm(0, [])
    for radius in IN_COLUMNS:
        made = Swarm(radius, _stacked(points, width, radius))
        if max(made.above, made.below) <= HEIGHT:
            break
    return made


def _dodged(points: Sequence[tuple[float, bool]], width: float, radius: float) -> list[Dot] | None:
    """Every dot at its exact place; None if they do not fit."""
    dots: dict[int, Dot] = {}
    settled: dict[bool, list[Dot]] = {True: [], False: []}
    for at in sorted(range(len(points)), key=lambda number: points[number][0]):
        share, above = points[at]
        dot = _free(radius + share * (width - 2 * radius), settled[above], radius)
        if dot is None:
            return None
        settled[above].append(dot)
        dots[at] = Dot(dot.x, dot.y if above else -dot.y)
    return [dots[at] for at in range(len(points))]


def _free(x: float, settled: Sequence[Dot], radius: float) -> Dot | None:
    """The lowest place over `x` that touches nobody."""
    reach = 2 * radius + 1
    near = [dot for dot in settled if abs(dot.x - x) < reach]
    y = radius + 3
    while any((dot.x - x) ** 2 + (dot.y - y) ** 2 < reach * reach for dot in near):
        y += 1
    return Dot(x, y) if y <= HEIGHT else None


def _stacked(points: Sequence[tuple[float, bool]], width: float, radius: float) -> list[Dot]:
    """Dots in columns. Which of the columns near its place is lowest takes the next one."""
    step = 2 * radius + 1
    last = int((width - 2 * radius) // step)
    heights: Counter[tuple[bool, int]] = Counter()
    dots = []
    for share, above in points:
        home = round(share * last)
        near = [column for column in range(last + 1) if abs(column - home) * step <= BESIDE * width]
        column = min(near, key=lambda column: (heights[above, column], abs(column - home)))
        y = radius + 3 + heights[above, column] * step
        heights[above, column] += 1
        dots.append(Dot(radius + column * step, y if above else -y))
    return dots
