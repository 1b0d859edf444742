"""People who vote alike, found in a matrix of votes with most cells empty.

Each vote counts as its distance from the mean vote on that comment, so an empty cell says nothing.
The two main directions of that matrix span a plane. A person's position on it is the one that
explains their votes best, held towards the middle as if by two votes more: somebody with seven
votes is not thrown to the edge, and nobody is pulled to the middle only for not having seen
everything (filling gaps with means would do that). k-means on the plane, for 2 to 5 groups; the
silhouette decides how many. If the first direction is no stronger than in shuffled votes there is
no pattern, and there are no groups.

Participants and comments are taken in the order of their ids, so the order of the file does not
matter. Everything is deterministic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from holdfast.apps.report.main_directions import Dense, main_directions, shape
from holdfast.apps.report.model.comment import Votes

LEAST_VOTES = 7
"""Who voted less is in no group, as in Polis."""
FEWEST, MOST = 2, 5
SMALLEST = 5
"""Smaller groups are not shown: their members could be recognised."""
SMALLEST_SHARE = 0.02
PRIOR = 2.0
"""How many votes the pull to the middle weighs. Measured on two Polis exports: the groups agree
best with Polis' own between 1 and 2, and below 1 they fall apart."""
_SHUFFLES = 5
_STARTS = 8
_ROUNDS = 15
_JUDGED = 1500
"""People by whom a number of groups is judged: enough to tell, few enough to be quick."""

Labels = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Grouping:
    """(participant, x, y, group) for everybody with enough votes, by participant; groups are
    lettered from the largest, empty where too small to be shown."""

    people: tuple[tuple[str, float, float, str], ...]
    silhouette: float


def find_groups(votes: Votes) -> Grouping | None:
    """The groups in a matrix of votes; None if there is no pattern that chance would not make."""
    participants, matrix, cast = _active(votes)
    if len(participants) < FEWEST * SMALLEST or shape(cast)[1] < 3:
        return None
    _, values, directions = main_directions(matrix, 2, _ROUNDS)
    if values[0] <= _by_chance(matrix):
        return None
    plane = _plane(matrix, cast, directions.T)
    labels, silhouette = _best_grouping(plane)
    letters = _letters(labels)
    if len(set(letters.values()) - {""}) < FEWEST:
        return None
    people = [
        (name, round(float(x), 3), round(float(y), 3), letters[int(label)])
        for name, (x, y), label in zip(participants, _framed(plane), labels, strict=True)
    ]
    return Grouping(tuple(people), round(silhouette, 3))


def _active(votes: Votes) -> tuple[list[str], csr_matrix, csr_matrix]:
    """Everybody with enough votes; the distance of each vote from the mean; and where somebody
    voted."""
    cells = np.array(votes.cells, np.intp).reshape(-1, 3)
    least = min(LEAST_VOTES, len(np.unique(cells[:, 1])))
    counts = np.bincount(cells[:, 0], minlength=len(votes.participants))
    names = sorted(name for at, name in enumerate(votes.participants) if counts[at] >= least)
    row_of = {name: row for row, name in enumerate(names)}
    rows = np.array([row_of.get(name, -1) for name in votes.participants], np.intp)[cells[:, 0]]
    order = np.argsort(np.argsort(np.array(votes.comments, dtype=object), kind="stable"))
    columns, values = order[cells[:, 1]], cells[:, 2].astype(np.float64)
    active = rows >= 0
    rows, columns, values = rows[active], columns[active], values[active]
    shape = (len(names), len(votes.comments))
    totals = np.bincount(columns, values, minlength=shape[1])
    means = totals / np.maximum(np.bincount(columns, minlength=shape[1]), 1)
    matrix = csr_matrix((values - means[columns], (rows, columns)), shape=shape)
    return names, matrix, csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def _by_chance(matrix: csr_matrix) -> float:
    """The strongest first direction when the votes on each comment are dealt out anew among those
    who voted on it."""
    random = np.random.default_rng(0)
    coordinates = matrix.tocsc().tocoo()
    strongest = 0.0
    for _ in range(_SHUFFLES):
        dealt = np.lexsort((random.random(len(coordinates.data)), coordinates.col))
        shuffled = csr_matrix(
            (coordinates.data[dealt], (coordinates.row, coordinates.col)), shape=matrix.shape
        )
        strongest = max(strongest, float(main_directions(shuffled, 2, _ROUNDS)[1][0]))
    return strongest


def _plane(matrix: csr_matrix, cast: csr_matrix, directions: Dense) -> Dense:
    """Where each person's votes put them: ridge regression on the two directions. Signs are fixed
    so that the picture is always the same way round."""
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(2)])
    pulls = np.asarray(matrix @ directions)
    crossed = [np.asarray(cast @ (directions[:, i] * directions[:, j])) for i, j in _PAIRS]
    systems = np.empty((len(pulls), 2, 2))
    systems[:, 0, 0], systems[:, 1, 1] = crossed[0] + PRIOR, crossed[2] + PRIOR
    systems[:, 0, 1] = systems[:, 1, 0] = crossed[1]
    return np.linalg.solve(systems, pulls[:, :, None])[:, :, 0].astype(np.float64)


_PAIRS = ((0, 0), (0, 1), (1, 1))


def _best_grouping(plane: Dense) -> tuple[Labels, float]:
    most = min(MOST, len(plane) // SMALLEST)
    judges = np.unique(np.linspace(0, len(plane) - 1, min(len(plane), _JUDGED)).astype(np.intp))
    tried = [_k_means(plane, count) for count in range(FEWEST, most + 1)]
    scores = [round(silhouette(plane[judges], labels[judges]), 4) for labels in tried]
    best = max(range(len(tried)), key=lambda at: (scores[at], -at))
    return tried[best], scores[best]


def _k_means(plane: Dense, count: int) -> Labels:
    """The tightest of several starts, the first of them far apart."""
    random = np.random.default_rng(count)
    starts = [_far_apart(plane, count)]
    starts += [plane[random.choice(len(plane), count, replace=False)] for _ in range(_STARTS)]
    results = [_settled(plane, centres) for centres in starts]
    return min(results, key=lambda result: round(result[1], 9))[0]


def _far_apart(plane: Dense, count: int) -> Dense:
    chosen = [plane[np.argmax(_squared(plane, plane.mean(axis=0)[None])[:, 0])]]
    while len(chosen) < count:
        chosen.append(plane[np.argmax(_squared(plane, np.array(chosen)).min(axis=1))])
    return np.array(chosen)


def _settled(plane: Dense, centres: Dense) -> tuple[Labels, float]:
    labels = np.full(len(plane), -1)
    while True:
        nearest = _squared(plane, centres).argmin(axis=1)
        if (nearest == labels).all():
            return labels, float(((plane - centres[labels]) ** 2).sum())
        labels = nearest
        centres = np.array(
            [
                plane[labels == at].mean(axis=0) if (labels == at).any() else centre
                for at, centre in enumerate(centres)
            ]
        )


def _squared(points: Dense, centres: Dense) -> Dense:
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)


def silhouette(points: Dense, labels: Labels) -> float:
    """How much nearer points are to their own group than to the next, on average."""
    numbers = np.unique(labels)
    if len(numbers) < 2:
        return -1.0
    distances = np.sqrt(np.maximum(_squared(points, points), 0.0))
    sums = np.stack([distances[:, labels == number].sum(axis=1) for number in numbers], axis=1)
    sizes = np.array([(labels == number).sum() for number in numbers])
    own = np.searchsorted(numbers, labels)
    rows = np.arange(len(labels))
    to_own = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[rows, own] = np.inf
    to_next = means.min(axis=1)
    return float(((to_next - to_own) / np.maximum(np.maximum(to_own, to_next), 1e-9)).mean())


def _letters(labels: Labels) -> dict[int, str]:
    """A letter for each group, from the largest; none for those that are too small."""
    sizes = np.bincount(labels)
    least = max(SMALLEST, SMALLEST_SHARE * len(labels))
    first = {int(label): int(np.argmax(labels == label)) for label in np.unique(labels)}
    order = sorted(first, key=lambda label: (-sizes[label], first[label]))
    shown = [label for label in order if sizes[label] >= least]
    return dict.fromkeys(order, "") | {label: chr(65 + at) for at, label in enumerate(shown)}


def _framed(plane: Dense) -> Dense:
    """Positions between 0 and 1, scaled equally in both directions."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    scale = max(float((high - low).max()), 1e-9)
    return (plane - (low + high) / 2) / scale + 0.5
