"""The main directions of a sparse matrix: what most of the differences between its rows are made
of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

_SEED, _SPARE = 0, 8
"""Where the iteration starts, and how many directions it takes besides."""

Dense = NDArray[np.float64]


def shape(matrix: csr_matrix) -> tuple[int, int]:
    rows, columns = matrix.get_shape()
    return int(rows), int(columns)


def main_directions(matrix: csr_matrix, count: int, rounds: int) -> tuple[Dense, Dense, Dense]:
    """The first singular vectors and values (left, values, right), by subspace iteration on the
    shorter side, from a start that is always the same."""
    rows, columns = shape(matrix)
    if rows > columns:
        left, values, right = main_directions(csr_matrix(matrix.T), count, rounds)
        return right.T, values, left.T
    start = np.random.default_rng(_SEED).standard_normal((columns, count + _SPARE))
    basis = matrix @ start
    for _ in range(rounds):
        basis = matrix @ (matrix.T @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    left, values, right = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    return (basis @ left)[:, :count], values[:count], right[:count]
