"""Clusters of points that are there are found, the same every time."""

import numpy as np
import pytest

from holdfast.apps.report.local import clustering
from holdfast.apps.report.local.cluster_tree import UNASSIGNED, Tree
from holdfast.apps.report.local.clustering import divide, isolated_rows, small_clusters, smooth
from holdfast.apps.report.local.embeddings import unit_length
from holdfast.apps.report.local.map_layout import positions


def clouds(
    sizes: list[int], spread: float = 0.25, dimensions: int = 24
) -> tuple[np.ndarray, np.ndarray]:
    """Clouds of points around far apart middles, and which cloud each belongs to."""
    random = np.random.default_rng(7)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    points = np.eye(dimensions)[labels] + spread * random.standard_normal((len(labels), dimensions))
    return unit_length(points.astype(np.float32)), labels


def purity(clusters: np.ndarray, real: np.ndarray) -> float:
    return sum(np.bincount(real[clusters == label]).max() for label in np.unique(clusters)) / len(
        real
    )


def test_clouds_are_found():
    points, real = clouds([80, 60, 40, 40, 30])
    division = divide(points, np.arange(len(points)), 5)
    assert len(np.unique(division.topics)) == 5
    assert purity(division.topics, real) > 0.95


def test_a_subtopic_lies_in_one_topic():
    points, _ = clouds([120, 90, 60, 60])
    division = divide(points, np.arange(len(points)))
    for subtopic in np.unique(division.subtopics):
        assert len(np.unique(division.topics[division.subtopics == subtopic])) == 1


@pytest.mark.parametrize("topics", [1, 2, 3, 7])
def test_as_many_topics_as_asked_for(topics):
    points, _ = clouds([60, 60, 60, 60, 60, 60, 60])
    division = divide(points, np.arange(len(points)), topics)
    assert len(set(division.topics.tolist()) - {UNASSIGNED}) == topics


def test_few_rows_are_one_topic():
    points, _ = clouds([4, 4])
    assert set(divide(points, np.arange(8)).topics.tolist()) == {0}


def test_no_rows_have_no_topics():
    assert len(divide(np.zeros((0, 8), np.float32), np.zeros(0, np.intp)).topics) == 0


def test_rows_that_are_all_alike_are_one_topic():
    points = np.repeat(unit_length(np.ones((1, 8), np.float32)), 500, axis=0)
    assert set(divide(points, np.arange(500)).subtopics.tolist()) == {0}


def test_what_resembles_nothing_is_apart():
    points, _ = clouds([60, 60], spread=0.1)
    points[0] = unit_length(np.eye(24, dtype=np.float32)[20:21])[0]
    isolated = isolated_rows(points, np.arange(len(points)))
    assert isolated[0]
    assert isolated.sum() <= 0.12 * len(points)


def test_small_clusters_keep_clouds_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clustering, "_SMALL_CLUSTERS", 60)
    points, real = clouds([300, 200, 100])
    assert purity(small_clusters(points), real) > 0.97


def test_a_tree_of_small_clusters_finds_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clustering, "LARGEST_TREE", 200)
    monkeypatch.setattr(clustering, "_SMALL_CLUSTERS", 120)
    points, real = clouds([150, 120, 90, 90, 60])
    assert purity(divide(points, np.arange(len(points)), 5).topics, real) > 0.95


def test_smoothing_pulls_a_cloud_together():
    points, _ = clouds([50, 50])
    assert (smooth(points)[:50] @ smooth(points)[:50].T).mean() > (
        points[:50] @ points[:50].T
    ).mean()


def test_cutting_a_tree_cuts_the_highest_first():
    joined = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 9.0, 4]])
    tree = Tree(4, joined)
    assert tree.cut(tree.root, 1) == [6]
    assert tree.cut(tree.root, 2) == [4, 5]
    assert tree.cut(tree.root, 3) == [2, 3, 4]
    assert tree.cut(tree.root, 9) == [0, 1, 2, 3]
    assert tree.below(5) == [2, 3]


def test_places_on_the_map_are_in_the_frame_and_islands_apart():
    points, real = clouds([80, 40, 20])
    points_placed = positions(points, real)
    assert points_placed.min() >= 0
    assert points_placed.max() <= 1
    middles = np.stack([points_placed[real == label].mean(axis=0) for label in range(3)])
    own = np.linalg.norm(points_placed - middles[real], axis=1)
    nearest = np.linalg.norm(points_placed[:, None] - middles[None], axis=2).min(axis=1)
    assert (own == nearest).mean() > 0.9


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_places_are_on_the_map_too(rows):
    assert positions(np.eye(4, dtype=np.float32)[:rows], np.zeros(rows, np.intp)).shape == (rows, 2)
