"""What a report would cost, step by step, as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.apps.report.model.estimate import Estimate
from holdfast.cli.render.tables import Cell, table
from holdfast.model.duration import humanise

FIGURES = ("CALLS", "TOKENS IN", "TOKENS OUT", "COST")


def estimate_table(estimate: Estimate) -> RenderableType:
    lines = [
        *((step.step, step) for step in estimate.steps),
        ("in all", estimate),
    ]
    rows: list[list[Cell]] = [
        [
            name,
            f"{costs.calls:,}",
            f"{costs.input_tokens:,}",
            f"{costs.output_tokens:,}",
            _dollars(costs.cost),
        ]
        for name, costs in lines
    ]
    head = Text(
        f"{estimate.comments:,} comments with {estimate.model}, if no answer is known yet",
        style="bold",
    )
    return Group(head, table(("STEP", *FIGURES), rows, right=FIGURES), Text(_times(estimate)))


def _times(estimate: Estimate) -> str:
    limit = f"a run may take {humanise(estimate.timeout_seconds)} before it is stopped"
    if not estimate.least_seconds:
        return limit
    return f"the model's limits make it take {humanise(estimate.least_seconds)} at least; {limit}"


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
