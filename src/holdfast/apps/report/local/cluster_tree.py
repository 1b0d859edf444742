"""A tree of clusters, and cuts through it."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.intp]
"""The number of its cluster for each row; UNASSIGNED if it fits in none."""
UNASSIGNED = -1


@dataclass(frozen=True, slots=True)
class Tree:
    """Which nodes were joined at which height. Nodes below `leaves` are the leaves themselves."""

    leaves: int
    joined: NDArray[np.float64]

    @property
    def root(self) -> int:
        return self.leaves + len(self.joined) - 1

    def children(self, node: int) -> tuple[int, int]:
        left, right = self.joined[node - self.leaves, :2]
        return int(left), int(right)

    def height(self, node: int) -> float:
        return float(self.joined[node - self.leaves, 2]) if node >= self.leaves else 0.0

    def below(self, node: int) -> list[int]:
        """The leaves under a node."""
        below, waiting = [], [node]
        while waiting:
            current = waiting.pop()
            if current < self.leaves:
                below.append(current)
            else:
                waiting.extend(self.children(current))
        return sorted(below)

    def cut(self, node: int, parts: int) -> list[int]:
        """A node cut into parts: always the one whose halves differ most is cut next."""
        waiting, leaves = [(-self.height(node), node)], list[int]()
        while waiting and len(waiting) + len(leaves) < parts:
            _, at = heappop(waiting)
            if at < self.leaves:
                leaves.append(at)
                continue
            for child in self.children(at):
                heappush(waiting, (-self.height(child), child))
        return sorted(leaves + [at for _, at in waiting])

    def labels(self, nodes: list[int]) -> Labels:
        """The number of the node that each leaf is under."""
        labels = np.full(self.leaves, UNASSIGNED, np.intp)
        for number, node in enumerate(nodes):
            labels[self.below(node)] = number
        return labels
