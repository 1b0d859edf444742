"""An order for the rows of a matrix in which neighbours are alike: along the direction in which
they differ most."""

from __future__ import annotations

from collections.abc import Sequence


def by_likeness(rows: Sequence[Sequence[float]]) -> list[int]:
    """The numbers of the rows, in order. The same for the same rows, every time."""
    if not rows or not rows[0]:
        return list(range(len(rows)))
    weights = _direction(_centred(rows))
    scores = [
        sum(weight * value for weight, value in zip(weights, row, strict=True))
        for row in _centred(rows)
    ]
    return sorted(range(len(rows)), key=lambda at: (-round(scores[at], 6), at))


def _centred(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return [[value - mean for value, mean in zip(row, means, strict=True)] for row in rows]


def _direction(rows: Sequence[Sequence[float]], rounds: int = 40) -> list[float]:
    """The first principal component, by power iteration."""
    weights = [1.0 + at / 100 for at in range(len(rows[0]))]
    for _ in range(rounds):
        scores = [
            sum(weight * value for weight, value in zip(weights, row, strict=True)) for row in rows
        ]
        weights = [
            sum(score * row[at] for score, row in zip(scores, rows, strict=True))
            for at in range(len(weights))
        ]
        size = max((abs(weight) for weight in weights), default=0)
        if not size:
            return [1.0] * len(weights)
        weights = [weight / size for weight in weights]
    return weights if weights[0] >= 0 else [-weight for weight in weights]
