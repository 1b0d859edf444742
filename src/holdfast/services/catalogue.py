"""Pipelines as people see them: what they take, how their steps depend on one another, where they
queue."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.model.pipeline import Pipeline
from holdfast.model.step import Step


class DeclaredStep(Struct):
    """A step as declared. `needs` must have ended before it starts; `streams` only have to have
    begun."""

    name: str
    needs: list[str]
    streams: list[str]
    takes_input: bool
    optional: bool
    result: str
    max_attempts: int
    timeout: float
    version: str


class PipelineView(Struct):
    name: str
    version: str
    input: str
    result: str
    lane: str
    order: str
    unique: bool
    max_attempts: int
    timeout: float
    origin: str
    steps: list[DeclaredStep]


def pipeline_view(pipeline: Pipeline[Any], origin: str = "") -> PipelineView:
    return PipelineView(
        pipeline.name,
        pipeline.version,
        pipeline.input.name,
        pipeline.result_step.name,
        pipeline.lane.name,
        pipeline.lane.order,
        pipeline.unique,
        pipeline.max_attempts,
        pipeline.timeout,
        origin,
        [_declared(step) for step in pipeline.steps.values()],
    )


def _declared(step: Step) -> DeclaredStep:
    return DeclaredStep(
        step.name,
        sorted(step.waits_for),
        list(step.streams),
        step.takes_input is not None,
        step.when is not None,
        step.result.name,
        step.max_attempts,
        step.timeout,
        step.version,
    )


def as_mermaid(view: PipelineView) -> str:
    """A flowchart: solid arrows wait for the end, dotted ones follow items, dashed boxes may be
    skipped."""
    lines = ["flowchart LR", f'  input(["{view.input}"])']
    for step in view.steps:
        lines.append(f'  {step.name}["{step.name}"]')
        lines += [f"  {need} --> {step.name}" for need in step.needs]
        lines += [f"  {source} -. items .-> {step.name}" for source in step.streams]
        if not step.needs and not step.streams:
            lines.append(f"  input --> {step.name}")
        if step.optional:
            lines.append(f"  style {step.name} stroke-dasharray: 5 5")
    return "\n".join(lines)
