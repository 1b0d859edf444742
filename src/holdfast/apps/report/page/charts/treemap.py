"""Squarified treemaps: areas in proportion to values, as square as they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float


def squarify(values: Sequence[float], box: Box) -> list[Box]:
    """One box for each value, in the order given; best with the greatest value first."""
    total = sum(values)
    if total <= 0:
        return [Box(box.x, box.y, 0, 0) for _ in values]
    areas = [value * box.width * box.height / total for value in values]
    placed: list[Box] = []
    while len(placed) < len(areas):
        rest = areas[len(placed) :]
        row = _row(rest, min(box.width, box.height))
        boxes, box = _laid(rest[:row], box)
        placed += boxes
    return placed


def _row(areas: Sequence[float], side: float) -> int:
    """How many of the areas make the best next row along a side."""
    best, worst = 1, _worst(areas[:1], side)
    for count in range(2, len(areas) + 1):
        now = _worst(areas[:count], side)
        if now > worst:
            break
        best, worst = count, now
    return best


def _worst(row: Sequence[float], side: float) -> float:
    """The most oblong of a row's boxes: the ratio of its sides."""
    total = sum(row)
    depth = total / side if side else 0
    if not depth:
        return float("inf")
    return max(max(depth * depth / area, area / (depth * depth)) if area else 1 for area in row)


def _laid(row: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """A row along the shorter side of the box, and what is left of the box."""
    total, boxes = sum(row), []
    if box.width >= box.height:
        depth, at = (total / box.height if box.height else 0), box.y
        for area in row:
            length = area / depth if depth else 0
            boxes.append(Box(box.x, at, depth, length))
            at += length
        return boxes, Box(box.x + depth, box.y, max(box.width - depth, 0), box.height)
    depth, at = total / box.width, box.x
    for area in row:
        length = area / depth if depth else 0
        boxes.append(Box(at, box.y, length, depth))
        at += length
    return boxes, Box(box.x, box.y + depth, box.width, max(box.height - depth, 0))
