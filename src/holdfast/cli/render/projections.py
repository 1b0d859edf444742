"""The registered projections."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import age, empty, table
from holdfast.services.projections import COUNTED, ProjectionView


def projection_table(items: Sequence[ProjectionView]) -> RenderableType:
    if not items:
        return empty("projections are registered", "a worker registers those that it runs")
    headings = ("PROJECTION", "KIND", "POSITION", "BEHIND", "OLDEST", "RUNS IN", "LAST ERROR")
    rows = [
        [
            view.name,
            view.kind,
            str(view.position),
            f"{COUNTED}+" if view.behind == COUNTED else str(view.behind),
            age(view.oldest) if view.oldest else "",
            view.holder,
            _error(view),
        ]
        for view in items
    ]
    return table(
        headings, rows, right=("POSITION", "BEHIND"), whole=("PROJECTION",), free="LAST ERROR"
    )


def _error(view: ProjectionView) -> Text:
    when = f" ({age(view.failed)} ago)" if view.failed else ""
    return Text(f"{view.error}{when}" if view.error else "", style="red" if view.failing else "dim")
