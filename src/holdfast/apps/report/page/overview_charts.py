"""At a glance: how much was said about what, as bars, dots, a treemap and a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from holdfast.apps.report.model.document import ReportSubtopic, ReportTopic
from holdfast.apps.report.page.charts.dots import STEP, grid, path
from holdfast.apps.report.page.charts.treemap import Box, squarify
from holdfast.apps.report.page.content import PageContent

UNITS = ("people", "claims")
COLUMNS = 40
DOTS_AT_MOST = 2_400
TREEMAP = Box(0, 0, 160, 100)
GAP = 0.7
"""Between topics, in units of the treemap."""
LONGEST = 90.0
"""Percent of its row that the longest bar takes: its figure needs the rest."""
LABEL_APART = 7.0
"""Percent of the map's height that labels keep from one another."""


@dataclass(frozen=True, slots=True)
class Segment:
    subtopic: ReportSubtopic
    value: int
    x: float
    width: float
    """In percent."""


@dataclass(frozen=True, slots=True)
class TopicBar:
    topic: ReportTopic
    value: int
    segments: list[Segment]

    @property
    def end(self) -> float:
        return sum(segment.width for segment in self.segments)


@dataclass(frozen=True, slots=True)
class TreemapCell:
    topic: ReportTopic
    subtopic: ReportSubtopic
    value: int
    first: bool
    """Whether it is the largest of its topic, and so tells the topic's name."""
    box: Box
    """In percent."""


@dataclass(frozen=True, slots=True)
class TopicDots:
    topic: ReportTopic
    paths: list[tuple[ReportSubtopic, str]]
    height: int


@dataclass(frozen=True, slots=True)
class CommentCloud:
    """The comments of one topic on the map."""

    name: str
    colour: int
    path: str
    comments: list[str]
    x: float
    y: float


class OverviewCharts:
    def __init__(self, content: PageContent) -> None:
        self._content = content
        self.topics = [topic for topic in content.topics if topic.claims]

    def bars(self, unit: str) -> list[TopicBar]:
        most = max((_value(topic, unit) for topic in self.topics), default=0) or 1
        return [_bar(topic, unit, most) for topic in self.topics]

    def treemap(self, unit: str) -> list[TreemapCell]:
        topics = sorted(self.topics, key=lambda topic: -_value(topic, unit))
        boxes = squarify([_value(topic, unit) for topic in topics], TREEMAP)
        return [
            cell
            for topic, box in zip(topics, boxes, strict=True)
            for cell in _cells(topic, unit, box)
        ]

    def dots(self, unit: str) -> list[TopicDots]:
        return [self._dots(topic, unit) for topic in self.topics]

    def each_dot(self, unit: str) -> int:
        """How many people or claims one dot stands for."""
        total = sum(_value(part, unit) for topic in self.topics for part in topic.subtopics)
        return max(1, -(-total // DOTS_AT_MOST))

    @property
    def dots_width(self) -> int:
        return COLUMNS * STEP

    @cached_property
    def map(self) -> list[CommentCloud]:
        """Clouds of comments, one for each topic, and one for all that belong to none."""
        homes = {
            quote.comment: placed
            for placed in self._content.claims.values()
            for quote in placed.claim.quotes
        }
        spots: dict[tuple[str, int], list[tuple[str, float, float]]] = {}
        for comment, x, y in _framed(self._content.report.map):
            home = homes.get(comment)
            key = (home.topic.name, home.colour) if home and home.colour else ("", 0)
            spots.setdefault(key, []).append((comment, x, y))
        return _labelled(
            [
                _cloud(name, colour, spots_of_topic)
                for (name, colour), spots_of_topic in spots.items()
            ]
        )

    def _dots(self, topic: ReportTopic, unit: str) -> TopicDots:
        per_dot = self.each_dot(unit)
        parts = [part for part in topic.subtopics if part.claims]
        paths, rows = grid([max(1, round(_value(part, unit) / per_dot)) for part in parts], COLUMNS)
        return TopicDots(topic, list(zip(parts, paths, strict=True)), rows * STEP)


def _value(part: ReportTopic | ReportSubtopic, unit: str) -> int:
    if unit == "people":
        return part.people
    return part.claims if isinstance(part, ReportTopic) else len(part.claims)


def _bar(topic: ReportTopic, unit: str, most: int) -> TopicBar:
    """People who speak about several subtopics count once in the bar's length, which the subtopics
    share."""
    value = _value(topic, unit)
    shares = [(part, _value(part, unit)) for part in topic.subtopics if part.claims]
    total, at, segments = sum(share for _, share in shares) or 1, 0.0, []
    for part, share in shares:
        width = LONGEST * value / most * share / total
        segments.append(Segment(part, share, at, width))
        at += width
    return TopicBar(topic, value, segments)


def _cells(topic: ReportTopic, unit: str, box: Box) -> list[TreemapCell]:
    parts = sorted(
        (part for part in topic.subtopics if part.claims), key=lambda part: -_value(part, unit)
    )
    inner = Box(box.x, box.y, max(box.width - GAP, 0.1), max(box.height - GAP, 0.1))
    boxes = squarify([_value(part, unit) for part in parts], inner)
    return [
        TreemapCell(topic, part, _value(part, unit), at == 0, _percent(cell_box))
        for at, (part, cell_box) in enumerate(zip(parts, boxes, strict=True))
    ]


def _percent(box: Box) -> Box:
    across, down = 100 / TREEMAP.width, 100 / TREEMAP.height
    return Box(box.x * across, box.y * down, box.width * across, box.height * down)


def _framed(spots: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """The spots in percent of a frame that they fill, but for a margin."""
    if not spots:
        return []
    left, top = min(x for _, x, _ in spots), min(y for _, _, y in spots)
    width, height = max(x for _, x, _ in spots) - left or 1, max(y for _, _, y in spots) - top or 1
    return [
        (comment, 3 + 94 * (x - left) / width, 7 + 88 * (y - top) / height)
        for comment, x, y in spots
    ]


def _cloud(name: str, colour: int, spots: list[tuple[str, float, float]]) -> CommentCloud:
    drawn = path((round(x * 10), round(y * 10)) for _, x, y in spots)
    x, y = median(x for _, x, _ in spots), sorted(y for _, _, y in spots)[len(spots) // 10] - 2
    return CommentCloud(name, colour, drawn, [comment for comment, _, _ in spots], x, y)


def _labelled(clouds: list[CommentCloud]) -> list[CommentCloud]:
    """Labels moved down until none is written over another."""
    settled: list[CommentCloud] = []
    for cloud in sorted(clouds, key=lambda cloud: cloud.y):
        y = cloud.y
        while any(
            abs(other.x - cloud.x) < 30 and abs(other.y - y) < LABEL_APART for other in settled
        ):
            y += 1
        x = min(max(cloud.x, 14), 86)
        settled.append(
            CommentCloud(cloud.name, cloud.colour, cloud.path, cloud.comments, x, min(y, 97))
        )
    return settled
