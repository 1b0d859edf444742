"""What a report would cost."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.render.tables import Cell, table
from holdfast.model.report.estimate import Estimate

COUNTED = ("CALLS", "TOKENS IN", "TOKENS OUT", "COST")


def estimate_page(found: Estimate) -> RenderableType:
    """What a report would cost, step by step."""
    lines = [
        (one.step, one.calls, one.input_tokens, one.output_tokens, one.cost) for one in found.steps
    ]
    lines.append(("in all", found.calls, found.input_tokens, found.output_tokens, found.cost))
    rows: list[list[Cell]] = [
        [name, f"{calls:,}", f"{given:,}", f"{said:,}", _dollars(cost)]
        for name, calls, given, said, cost in lines
    ]
    head = Text(
        f"{found.comments:,} comments with {found.model}, if no answer is known yet", style="bold"
    )
    return Group(head, table(("STEP", *COUNTED), rows, right=COUNTED))


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
