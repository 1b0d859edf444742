"""The workers of a store."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import Cell, empty, table, took
from holdfast.services.workers import WorkerView

STYLES = {"alive": "green", "lost": "red"}


def worker_table(items: Sequence[WorkerView]) -> RenderableType:
    if not items:
        return empty("workers", "`holdfast worker` starts one")
    headings = ("WORKER", "STATE", "RUNS", "VERSION", "LAST BEAT", "PIPELINES")
    return table(
        headings,
        map(_row, items),
        right=("RUNS", "LAST BEAT"),
        whole=("WORKER",),
        free="PIPELINES",
    )


def _row(worker: WorkerView) -> list[Cell]:
    return [
        worker.name,
        Text(worker.state, style=STYLES[worker.state]),
        f"{worker.active} of {worker.concurrency}",
        worker.version,
        f"{took(worker.silent)} ago",
        ", ".join(worker.pipelines),
    ]
