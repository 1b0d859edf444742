"""What the steps of a run have found, all together."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.report.model.claim import Claims
from holdfast.apps.report.model.comment import Comment, CommentSet, Row
from holdfast.apps.report.model.crux import Cruxes
from holdfast.apps.report.model.opinion import Opinions
from holdfast.apps.report.model.summary import Summaries
from holdfast.apps.report.model.taxonomy import Clustering
from holdfast.apps.report.request import ReportRequest
from holdfast.apps.report.sorting import Sorted


@dataclass(frozen=True, slots=True)
class StepResults:
    """The results of all steps."""

    request: ReportRequest
    source: CommentSet
    comments: dict[str, Comment]
    clustering: Clustering
    claims: Claims
    sorted: Sorted
    summaries: Summaries
    cruxes: Cruxes
    opinions: Opinions
    left_out: tuple[Row, ...]
