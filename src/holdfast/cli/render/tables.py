"""Tables without lines, and how all output writes words, times and missing values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from textwrap import indent

from rich.table import Table
from rich.text import Text

from holdfast.model.duration import humanise
from holdfast.model.run import ErrorInfo

COLOR = {
    "queued": "blue",
    "running": "yellow",
    "paused": "magenta",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "dim",
    "completed": "green",
    "in_progress": "yellow",
    "skipped": "dim",
    "pending": "dim",
}

Cell = str | Text | None


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    right: Collection[str] = (),
    whole: Collection[str] = (),
    free: str = "",
) -> Table:
    """A table without lines. Columns in `whole` hold ids and are never cut; `free` gives way to the
    others."""
    result = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    lines = [
        [_cell(cell, name == free) for name, cell in zip(headings, row, strict=True)]
        for row in rows
    ]
    for index, heading in enumerate(headings):
        widest = max((line[index].cell_len for line in lines), default=0)
        result.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading != free,
            min_width=widest if heading in whole else None,
        )
    for line in lines:
        result.add_row(*line)
    return result


def _cell(value: Cell, free: bool) -> Text:
    text = value if isinstance(value, Text) else Text(value or "")
    text.no_wrap = True
    text.overflow = "ellipsis" if free else "crop"
    return text


def colored(word: str) -> Text:
    return Text(word.replace("_", " "), style=COLOR.get(word, ""))


def moment(value: datetime | None) -> str:
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(value: datetime) -> str:
    """How long ago, in one unit: `45s`, `3m`, `2d`."""
    seconds = max(0.0, (datetime.now(UTC) - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds:.0f}s"


def took(value: float | None) -> str:
    return "" if value is None else humanise(value)


def empty(noun: str, hint: str = "") -> Text:
    return Text(f"no {noun}{f'; {hint}' if hint else ''}", style="dim")


def traceback_lines(error: ErrorInfo | None) -> list[Text]:
    """Where an error came from, to stand below what it says; nothing where that is not known."""
    if error is None or error.traceback is None:
        return []
    return [Text(indent(error.traceback, "  "), style="dim")]
