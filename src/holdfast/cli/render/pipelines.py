"""The pipelines that there are, and the steps of one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from holdfast.cli.render.tables import Cell, table, took
from holdfast.services.catalogue import DeclaredStep, PipelineView


def pipeline_table(items: Sequence[PipelineView]) -> RenderableType:
    headings = ("PIPELINE", "INPUT", "LANE", "TRIES", "TIMEOUT", "FROM", "STEPS")
    return table(
        headings, map(_pipeline_row, items), right=("TRIES",), whole=("PIPELINE",), free="STEPS"
    )


def _pipeline_row(view: PipelineView) -> list[Cell]:
    lane = f"{view.lane} (fifo)" if view.order == "fifo" else view.lane
    names = " ".join(step.name for step in view.steps)
    return [
        view.name,
        view.input,
        lane,
        str(view.max_attempts),
        took(view.timeout),
        view.origin,
        names,
    ]


def pipeline_graph(view: PipelineView) -> RenderableType:
    """Each step below what it waits for."""
    headings = ("STEP", "WAITS FOR", "FOLLOWS ITEMS OF", "GIVES", "TRIES", "TIMEOUT")
    return table(
        headings, map(_declared_row, view.steps), right=("TRIES",), whole=("STEP", "WAITS FOR")
    )


def _declared_row(step: DeclaredStep) -> list[Cell]:
    name = f"{step.name} (optional)" if step.optional else step.name
    needs = " ".join([*(["input"] if step.takes_input else []), *step.needs])
    return [
        name,
        needs,
        " ".join(step.streams),
        step.result,
        str(step.max_attempts),
        took(step.timeout),
    ]
