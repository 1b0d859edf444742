"""The map: one point for each comment, near each other what is similar, topics as islands that do
not overlap.

Topics lie as their middles do in the plane that shows most of their differences, then push each
other away until there is room for all. Inside an island comments lie by what sets them apart from
one another, and fill it evenly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from holdfast.apps.report.local.cluster_tree import Labels
from holdfast.apps.report.local.embeddings import Vectors

_ROUNDS = 200
_FILL = 0.8
_GOLDEN = 2.399963229728653
"""Turned by this angle again and again, points never line up."""

Points = NDArray[np.float64]


def positions(vectors: Vectors, islands: Labels) -> Points:
    """A place between 0 and 1 for each row; `islands` are numbered 0, 1, 2 … without a gap."""
    if not len(vectors):
        return np.zeros((0, 2))
    sizes = np.bincount(islands)
    radii = np.sqrt(sizes / sizes.sum())
    middles = np.stack([vectors[islands == number].mean(axis=0) for number in range(len(sizes))])
    centres = _apart(_plane(middles.astype(np.float64)), radii)
    points = np.zeros((len(vectors), 2))
    for number in range(len(sizes)):
        inside = islands == number
        points[inside] = centres[number] + _FILL * radii[number] * _disc(
            vectors[inside].astype(np.float64)
        )
    return _framed(points)


def _plane(rows: Points) -> Points:
    """The two main directions of some rows; signs are fixed so that the picture is always the same
    way round."""
    centred = rows - rows.mean(axis=0)
    if len(rows) < 3:
        return np.column_stack([np.arange(len(rows), dtype=float), np.zeros(len(rows))])
    last = centred.shape[1] - 1
    _, directions = eigh(centred.T @ centred, subset_by_index=[max(0, last - 1), last])
    directions = directions[:, ::-1].T
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    plane = centred @ directions.T
    spread = np.abs(plane).max()
    return plane / spread if spread else plane


def _apart(centres: Points, radii: Points) -> Points:
    """Discs pushed away from one another until none overlap, and pulled gently to the middle."""
    numbers = np.arange(len(centres))
    centres = centres + 1e-3 * np.column_stack(
        [np.cos(numbers * _GOLDEN), np.sin(numbers * _GOLDEN)]
    )
    room = radii[:, None] + radii[None, :]
    for _ in range(_ROUNDS):
        between = centres[:, None, :] - centres[None, :, :]
        distance = np.maximum(np.linalg.norm(between, axis=2), 1e-6)
        overlap = np.maximum(room - distance, 0) / distance
        np.fill_diagonal(overlap, 0)
        centres = 0.985 * (centres - centres.mean(axis=0)) + 0.5 * (
            overlap[:, :, None] * between
        ).sum(axis=1)
    return centres


def _disc(rows: Points) -> Points:
    """Rows spread evenly over a disc of radius 1: each keeps its direction, and its distance its
    rank."""
    plane = _plane(rows) if len(rows) > 2 else np.zeros((len(rows), 2))
    numbers = np.arange(len(rows))
    plane = plane + 1e-3 * np.column_stack([np.cos(numbers * _GOLDEN), np.sin(numbers * _GOLDEN)])
    angles = _evenly(np.arctan2(plane[:, 1], plane[:, 0]))
    ranks = np.empty(len(rows))
    ranks[np.argsort(np.round(np.linalg.norm(plane, axis=1), 6), kind="stable")] = (
        numbers + 0.5
    ) / len(rows)
    return np.sqrt(ranks)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


def _evenly(angles: Points) -> Points:
    """Angles half as they are, half spread evenly, so that an island has no empty side."""
    ranks = np.empty(len(angles))
    ranks[np.argsort(np.round(angles, 6), kind="stable")] = np.arange(len(angles))
    return 0.5 * angles + 0.5 * (2 * np.pi * ranks / len(angles) - np.pi)


def _framed(points: Points) -> Points:
    """Moved and scaled into the unit square, equally in both directions."""
    low, high = points.min(axis=0), points.max(axis=0)
    scale = max(float((high - low).max()), 1e-9)
    return np.round(0.02 + 0.96 * ((points - (low + high) / 2) / scale + 0.5), 4)
