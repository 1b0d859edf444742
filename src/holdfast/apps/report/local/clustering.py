"""Topics and subtopics in a set of vectors: one Ward tree, cut twice.

What resembles nothing else is set aside first. The rest is smoothed towards its nearest neighbours,
which pulls topics apart that lie close together, and joined into one tree, bottom up, so that what
is in one subtopic is in one topic. With very many vectors the tree is made of small clusters
instead. Subtopics that do not hold together are given up: what they held goes to the nearest other,
or fits nowhere. Everything is deterministic: no random starts, ties go to the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage

from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Labels, Tree
from holdfast.apps.report.local.embeddings import Vectors, subtract_mean, unit_length

FEWEST, MOST = 4, 20
"""How many topics are tried when nobody said how many there should be."""
_FEW_TOPICS, _COMMENTS_OF_TOPIC = 7, 7
"""So many topics are tried of a small file, too, if there are so many comments for each."""
_LARGEST = 0.25
"""A topic with a larger share of many rows is cut further, as long as there are not too many."""
_MANY = 300
_NEARLY_BEST = 0.97
"""Of numbers of topics that set them apart nearly as well as the best, the smallest is taken."""
LARGEST_TREE = 6000
_SMALL_CLUSTERS = 3000
_BLOCK = 1024
_JUDGED = 1500
"""Rows that judge a number of topics: enough to tell, few enough to be quick."""
_COMPARED = 4000
"""Rows that tell whether another resembles anything."""
_APART = 0.58
"""A row that is less than so much as near to its nearest as rows usually are resembles nothing."""
_ALIKE = 0.85
_LOOSE = 0.5
"""A subtopic that holds together less than so much as subtopics usually do does not."""
_NEAR = 0.3
"""How near a row must be to another subtopic to go there when its own was given up."""
_LEFT_OUT = 0.12
"""The largest share of rows that may fit nowhere."""


@dataclass(frozen=True, slots=True)
class Division:
    """For each row its topic and its subtopic. Subtopics are numbered through all topics."""

    topics: Labels
    subtopics: Labels


def divide(vectors: Vectors, owners: NDArray[np.intp], topics: int = 0) -> Division:
    """Topics and subtopics of rows that belong to comments (`owners`), as many topics as fit or as
    asked for."""
    similar = np.flatnonzero(~isolated_rows(vectors, owners))
    division = Division(
        np.full(len(vectors), UNASSIGNED, np.intp), np.full(len(vectors), UNASSIGNED, np.intp)
    )
    if not len(similar):
        return division
    if all_similar(vectors[similar]):
        division.topics[similar] = division.subtopics[similar] = 0
        return division
    centred = subtract_mean(vectors[similar])
    inner = _divide(centred, topics, most_topics(len(similar), len(np.unique(owners[similar]))))
    inner = _tightened(
        centred, inner, int(_LEFT_OUT * len(vectors)) - (len(vectors) - len(similar))
    )
    division.topics[similar], division.subtopics[similar] = inner.topics, inner.subtopics
    return division


def all_similar(vectors: Vectors) -> bool:
    """Whether all rows say nearly the same: then there is nothing to divide."""
    return float((vectors @ unit_length(vectors.sum(axis=0, keepdims=True))[0]).mean()) > _ALIKE


def isolated_rows(vectors: Vectors, owners: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which rows resemble no row of another comment: at most the furthest eighth."""
    if len(vectors) < 12:
        return np.zeros(len(vectors), np.bool_)
    others = _spread(len(vectors), _COMPARED)
    nearness = np.empty(len(vectors))
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK] @ vectors[others].T
        block[owners[start : start + _BLOCK, None] == owners[None, others]] = -1
        nearness[start : start + _BLOCK] = np.partition(block, -3, axis=1)[:, -3:].mean(axis=1)
    return nearness < min(
        _APART * float(np.median(nearness)), float(np.quantile(nearness, _LEFT_OUT))
    )


def _spread(rows: int, most: int) -> NDArray[np.intp]:
    """Row numbers, at most so many, evenly spread."""
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.intp))


def most_topics(rows: int, comments: int) -> int:
    """Few comments have few topics, however long they are."""
    usual = round(np.sqrt(min(rows, 2 * comments)) / 1.7)
    return int(np.clip(max(usual, min(_FEW_TOPICS, comments // _COMMENTS_OF_TOPIC)), 2, MOST))


def least_rows(rows: int) -> int:
    """How many of all rows make a topic."""
    return max(3, rows // 50)


def _divide(vectors: Vectors, topics: int, most: int) -> Division:
    if len(vectors) < 12 and topics < 2:
        return Division(np.zeros(len(vectors), np.intp), np.zeros(len(vectors), np.intp))
    small = small_clusters(vectors) if len(vectors) > LARGEST_TREE else np.arange(len(vectors))
    leaves = smooth(centroids(vectors, small))
    tree = Tree(len(leaves), linkage(leaves.astype(np.float64), "ward"))
    sizes = np.bincount(small, minlength=len(leaves))
    nodes = tree.cut(tree.root, topics or _fitting(tree, leaves, most))
    if not topics and len(vectors) >= _MANY:
        nodes = _without_giants(tree, nodes, sizes, most)
    groups = _joined_up(tree, leaves, sizes, nodes, 1 if topics else least_rows(len(vectors)))
    return _cut_again(tree, leaves, groups, sizes, small)


def subdivide(vectors: Vectors) -> Labels:
    """The subtopics of one topic that is given."""
    if len(vectors) < 12:
        return np.zeros(len(vectors), np.intp)
    small = small_clusters(vectors) if len(vectors) > LARGEST_TREE else np.arange(len(vectors))
    leaves = smooth(centroids(vectors, small))
    tree = Tree(len(leaves), linkage(leaves.astype(np.float64), "ward"))
    sizes = np.bincount(small, minlength=len(leaves))
    return _cut_again(tree, leaves, [[tree.root]], sizes, small).subtopics


def small_clusters(vectors: Vectors) -> Labels:
    """Many small clusters by k-means, from evenly spread starts."""
    starts = vectors[_spread(len(vectors), _SMALL_CLUSTERS)]
    labels = np.zeros(len(vectors), np.intp)
    for _ in range(4):
        labels = nearest(vectors, starts)
        labels = np.unique(labels, return_inverse=True)[1]
        starts = centroids(vectors, labels)
    return labels


def nearest(vectors: Vectors, targets: Vectors) -> Labels:
    """For each row the most similar target."""
    blocks = range(0, len(vectors), _BLOCK)
    return np.concatenate(
        [np.argmax(vectors[start : start + _BLOCK] @ targets.T, axis=1) for start in blocks]
    )


def centroids(vectors: Vectors, labels: Labels) -> Vectors:
    """The middle of each cluster, with length 1. Labels are 0, 1, 2 … without a gap; NOWHERE does
    not count."""
    inside = labels != UNASSIGNED
    sums = np.zeros((int(labels.max(initial=-1)) + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, labels[inside], vectors[inside])
    return unit_length(sums)


def neighbours(vectors: Vectors, count: int) -> NDArray[np.intp]:
    """The nearest other rows of each row."""
    nearest_rows = np.empty((len(vectors), count), np.intp)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK] @ vectors.T
        block[np.arange(len(block)), np.arange(start, start + len(block))] = -2
        nearest_rows[start : start + _BLOCK] = np.sort(
            np.argpartition(-block, count - 1, axis=1)[:, :count], axis=1
        )
    return nearest_rows


def smooth(vectors: Vectors, times: int = 3) -> Vectors:
    """Every row moved half-way to the middle of its nearest neighbours."""
    if len(vectors) < 12:
        return vectors
    count = min(3 + len(vectors) // 25, 35)
    for _ in range(times):
        vectors = unit_length(
            vectors + unit_length(vectors[neighbours(vectors, count)].mean(axis=1))
        )
    return vectors


def _fitting(tree: Tree, leaves: Vectors, most: int) -> int:
    """The number of topics that sets them apart best."""
    tried = range(min(FEWEST, most), most + 1)
    judges = _spread(len(leaves), _JUDGED)
    distances = 1 - leaves[judges] @ leaves[judges].T
    scores = {k: _silhouette(distances, tree.labels(tree.cut(tree.root, k))[judges]) for k in tried}
    enough = _NEARLY_BEST * max(scores.values())
    return min(k for k, score in scores.items() if round(score, 4) >= round(enough, 4))


def _without_giants(tree: Tree, nodes: list[int], sizes: Labels, most: int) -> list[int]:
    """The nodes, those that hold too large a share of everything cut in two."""
    while len(nodes) < most:
        members = {node: int(sizes[tree.below(node)].sum()) for node in nodes}
        largest = max(nodes, key=lambda node: (members[node], -node))
        if members[largest] <= _LARGEST * sizes.sum() or largest < tree.leaves:
            break
        nodes = sorted([*(node for node in nodes if node != largest), *tree.children(largest)])
    return nodes


def _silhouette(distances: NDArray[np.float32], labels: Labels) -> float:
    """How much nearer rows are to their own cluster than to the next, on average."""
    labels = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels)
    if len(sizes) < 2:
        return -1.0
    sums = np.stack(
        [distances[:, labels == number].sum(axis=1) for number in range(len(sizes))], axis=1
    )
    rows = np.arange(len(labels))
    to_own = sums[rows, labels] / np.maximum(sizes[labels] - 1, 1)
    means = sums / sizes
    means[rows, labels] = np.inf
    to_nearest = means.min(axis=1)
    return float(((to_nearest - to_own) / np.maximum(np.maximum(to_own, to_nearest), 1e-9)).mean())


def _joined_up(
    tree: Tree, leaves: Vectors, sizes: Labels, nodes: list[int], least: int
) -> list[list[int]]:
    """Lists of nodes that hold at least so much: what is smaller joins the nearest."""
    groups = [[node] for node in nodes]
    while len(groups) > 1:
        members = [int(sizes[_leaves(tree, group)].sum()) for group in groups]
        smallest = min(range(len(groups)), key=lambda number: (members[number], number))
        if members[smallest] >= least:
            break
        centres = unit_length(
            np.stack([leaves[_leaves(tree, group)].mean(axis=0) for group in groups])
        )
        similar = centres @ centres[smallest]
        similar[smallest] = -2
        groups[int(np.argmax(similar))].extend(groups[smallest])
        groups.pop(smallest)
    return groups


def _leaves(tree: Tree, group: list[int]) -> list[int]:
    return [leaf for node in group for leaf in tree.below(node)]


def _cut_again(
    tree: Tree, leaves: Vectors, topics: list[list[int]], sizes: Labels, small: Labels
) -> Division:
    """Each topic cut into subtopics, the more the larger it is."""
    of_topic = np.zeros(tree.leaves, np.intp)
    of_subtopic = np.zeros(tree.leaves, np.intp)
    count = 0
    for number, group in enumerate(topics):
        members = int(sizes[_leaves(tree, group)].sum())
        parts = int(np.clip(round(np.sqrt(members) / 2.4), 1, 8))
        nodes = _joined_up(tree, leaves, sizes, _parts(tree, group, parts), max(3, members // 25))
        for part in nodes:
            below = _leaves(tree, part)
            of_topic[below], of_subtopic[below] = number, count
            count += 1
    return Division(of_topic[small], of_subtopic[small])


def _parts(tree: Tree, group: list[int], parts: int) -> list[int]:
    """The nodes of a topic, the highest cut until there are enough."""
    nodes = list(group)
    while len(nodes) < parts:
        highest = max(nodes, key=lambda node: (tree.height(node), -node))
        if highest < tree.leaves:
            break
        nodes.remove(highest)
        nodes.extend(tree.children(highest))
    return nodes


def _tightened(vectors: Vectors, division: Division, room: int) -> Division:
    """Subtopics that do not hold together are given up; up to `room` of their rows fit nowhere
    then."""
    subtopics = division.subtopics
    centres = centroids(vectors, subtopics)
    together = np.bincount(subtopics, (vectors * centres[subtopics]).sum(axis=1)) / np.bincount(
        subtopics
    )
    firm = together >= _LOOSE * float(np.median(together))
    if firm.all():
        return division
    topic_of = np.zeros(len(centres), np.intp)
    topic_of[subtopics] = division.topics
    loose = np.flatnonzero(~firm[subtopics])
    similar = vectors[loose] @ centres[firm].T
    goes_to = np.flatnonzero(firm)[similar.argmax(axis=1)]
    nearness = similar.max(axis=1)
    order = np.argsort(nearness, kind="stable")
    nowhere = [row for row in order[: max(0, room)] if nearness[row] < _NEAR]
    goes_to[nowhere] = UNASSIGNED
    subtopics = subtopics.copy()
    subtopics[loose] = goes_to
    topics = np.where(subtopics == UNASSIGNED, UNASSIGNED, topic_of[subtopics])
    return Division(topics, np.where(subtopics == UNASSIGNED, UNASSIGNED, subtopics))
