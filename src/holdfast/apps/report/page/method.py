"""How the report was made: the funnel, in one picture for comments and one for claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.apps.report.model.document import Stage

_OF_COMMENTS = ("rows", "comments", "speaking")


@dataclass(frozen=True, slots=True)
class FunnelLevel:
    stage: Stage
    width: float
    """In percent of the widest level of the same kind."""
    before: float
    """How wide the level before was: what is between the two was lost."""


def funnel(stages: Sequence[Stage]) -> list[tuple[str, list[FunnelLevel]]]:
    """Comments and claims apart: one comment can make many claims, so one scale would mislead."""
    comments = [stage for stage in stages if stage.name in _OF_COMMENTS]
    claims = [stage for stage in stages if stage.name not in _OF_COMMENTS]
    return [
        (name, _levels(kind)) for name, kind in (("comments", comments), ("claims", claims)) if kind
    ]


def _levels(stages: Sequence[Stage]) -> list[FunnelLevel]:
    most = max(stage.count for stage in stages) or 1
    widths = [100 * stage.count / most for stage in stages]
    return [
        FunnelLevel(stage, width, before)
        for stage, width, before in zip(stages, widths, [100.0, *widths], strict=False)
    ]
