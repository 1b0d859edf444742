"""Dots: one for each thing counted, drawn as one path so that thousands of them stay light."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

STEP = 16


def grid(counts: Sequence[int], columns: int) -> tuple[list[str], int]:
    """One path for each count, the dots running on from one to the next through the rows; and how
    many rows it took."""
    paths, at = [], 0
    for count in counts:
        spots = ((number % columns, number // columns) for number in range(at, at + count))
        paths.append(path((STEP // 2 + x * STEP, STEP // 2 + y * STEP) for x, y in spots))
        at += count
    return paths, -(-at // columns)


def path(spots: Iterable[tuple[float, float]]) -> str:
    """Lines of no length: round ends make them dots."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in spots)
