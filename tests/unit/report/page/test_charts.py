"""Geometry: areas and lengths tell the truth, and marks do not cover one another."""

from itertools import combinations

import pytest
from tests.unit.report.page import samples

from holdfast.apps.report.model.document import Matrix, Stage
from holdfast.apps.report.page.agreement import at_least
from holdfast.apps.report.page.charts.dots import grid
from holdfast.apps.report.page.charts.order import by_likeness
from holdfast.apps.report.page.charts.swarm import HEIGHT, swarm
from holdfast.apps.report.page.charts.treemap import Box, squarify
from holdfast.apps.report.page.content import PageContent
from holdfast.apps.report.page.matrix import ROWS_SHOWN, table
from holdfast.apps.report.page.method import funnel
from holdfast.apps.report.page.overview_charts import LONGEST, OverviewCharts
from holdfast.apps.report.page.quote_marks import marked

VALUES = [[6, 6, 4, 3, 2, 2, 1], [1], [100, 1, 1], [5] * 30, [3, 2, 0]]


@pytest.mark.parametrize("values", VALUES)
def test_areas_of_a_treemap_are_in_proportion(values: list[int]) -> None:
    boxes = squarify(values, Box(0, 0, 160, 100))
    for value, box in zip(values, boxes, strict=True):
        assert box.width * box.height == pytest.approx(160 * 100 * value / sum(values))


@pytest.mark.parametrize("values", VALUES)
def test_boxes_of_a_treemap_fill_the_frame_and_do_not_overlap(values: list[int]) -> None:
    boxes = [box for box in squarify(values, Box(0, 0, 160, 100)) if box.width * box.height]
    assert max(box.x + box.width for box in boxes) == pytest.approx(160)
    assert max(box.y + box.height for box in boxes) == pytest.approx(100)
    for first, second in combinations(boxes, 2):
        across = min(first.x + first.width, second.x + second.width) - max(first.x, second.x)
        down = min(first.y + first.height, second.y + second.height) - max(first.y, second.y)
        assert min(across, down) < 1e-6


def test_a_treemap_of_nothing_is_empty() -> None:
    assert squarify([], Box(0, 0, 1, 1)) == []
    assert [box.width for box in squarify([0, 0], Box(0, 0, 1, 1))] == [0, 0]


def test_bars_are_as_long_as_their_figures_say_and_segments_share_them() -> None:
    glance = OverviewCharts(PageContent(samples.small()))
    for unit in ("people", "claims"):
        bars = glance.bars(unit)
        most = max(bar.value for bar in bars)
        for bar in bars:
            assert bar.end == pytest.approx(LONGEST * bar.value / most)
            assert [segment.x for segment in bar.segments] == sorted(
                segment.x for segment in bar.segments
            )


def test_each_dot_counts() -> None:
    paths, rows = grid([3, 0, 5], columns=4)
    assert [path.count("M") for path in paths] == [3, 0, 5]
    assert rows == 2


def test_thousands_of_claims_share_dots() -> None:
    glance = OverviewCharts(PageContent(samples.large(900, 900)))
    assert glance.each_dot("claims") == 1
    dots = sum(path.count("M") for group in glance.dots("claims") for _, path in group.paths)
    assert dots == 900


def test_the_dots_of_a_swarm_stand_at_their_score_and_touch_nobody() -> None:
    points = [(0.5, True)] * 9 + [(0.51, False)] * 9 + [(at / 40, at % 2 == 0) for at in range(41)]
    chart = swarm(points, 720)
    for (share, above), dot in zip(points, chart.dots, strict=True):
        assert dot.x == pytest.approx(chart.radius + share * (720 - 2 * chart.radius))
        assert (dot.y > 0) == above
    for first, second in combinations(chart.dots, 2):
        assert (first.x - second.x) ** 2 + (first.y - second.y) ** 2 >= (2 * chart.radius) ** 2


@pytest.mark.parametrize("point", [0.0, 0.5, 1.0])
def test_a_crowded_swarm_gets_smaller_dots_that_may_stand_a_little_beside_their_place(
    point: float,
) -> None:
    crowded = swarm([(point, True)] * 250, 720)
    assert crowded.radius < swarm([(point, True)] * 3, 720).radius
    assert crowded.above <= HEIGHT
    assert all(abs(dot.x / 720 - point) < 0.09 for dot in crowded.dots)


def test_few_votes_rank_behind_many() -> None:
    assert at_least(2, 2) < at_least(80, 100)
    assert at_least(0, 10) == at_least(5, 0) == 0


def test_people_who_stand_alike_are_beside_one_another() -> None:
    rows = [[1, 1, 1], [-1, -1, -1], [1, 1, 0], [-1, 0, -1], [1, 1, 1]]
    order = by_likeness(rows)
    assert set(order[:3]) in ({0, 2, 4}, {1, 3} | {order[2]})
    assert order == by_likeness(rows)
    assert by_likeness([]) == []
    assert by_likeness([[0, 0], [0, 0]]) == [0, 1]


def test_a_matrix_of_thousands_shows_those_with_most_positions() -> None:
    report = samples.small()
    cruxes = report.matrix.cruxes
    people = tuple(f"p{at}" for at in range(500))
    cells = tuple(
        tuple("agree" if column < at % 7 else "" for column in range(len(cruxes)))
        for at in range(500)
    )
    view = table(Matrix(people, cruxes, cells), PageContent(report))
    assert view is not None
    assert (len(view.people), view.left) == (ROWS_SHOWN, 300)
    assert min(person.positions for person in view.people) >= 4


def test_comments_and_claims_have_funnels_of_their_own() -> None:
    stages = [Stage("rows", 100), Stage("comments", 80), Stage("drafts", 300), Stage("claims", 60)]
    (of, comments), (_, claims) = funnel(stages)
    assert of == "comments"
    assert [level.width for level in comments] == [100, 80]
    assert [level.before for level in comments] == [100, 100]
    assert [level.width for level in claims] == [100, 20]


def test_marked_pieces_join_to_the_whole_comment_even_where_quotes_overlap() -> None:
    writer = samples.Writer()
    text = "one two three four five"
    quotes = [
        writer.quote("s", "A", text.replace(words, f"[[{words}]]"))
        for words in ("two three", "three four", "two", "five", text)
    ]
    pieces = list(marked(text, quotes[:4]))
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, quote in pieces if quote] == ["two three", " four", "five"]
    assert list(marked(text, [])) == [(text, None)]
    assert list(marked("", quotes)) == []
