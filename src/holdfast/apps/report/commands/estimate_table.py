"""What a report would cost, step by step, as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.apps.report.model.estimate import Estimate
from holdfast.cli.render.tables import Cell, table

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
    return Group(head, table(("STEP", *FIGURES), rows, right=FIGURES))


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
