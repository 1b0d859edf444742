"""A table of text: what every format is read as."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.apps.report.reading.notes import Notes
from holdfast.errors import InvalidInput

MOST_COLUMNS = 5_000


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that could not be read, and why."""

    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    format: str
    encoding: str
    separator: str
    columns: tuple[str, ...]
    """Names as in the file, made unique, with names for the nameless."""
    bound: int
    """There are no more rows than this."""
    rows: Callable[[Notes], Iterator[list[str] | UnreadableRow]]
    """All rows from the start. A list may be longer or shorter than `columns` where the file's row
    is."""


def column_names(header: list[str], filename: str, most: int = MOST_COLUMNS) -> tuple[str, ...]:
    """Names for all columns: as the file has them, `column 3` where it has none, `name (2)` where
    one comes again."""
    if len(header) > most:
        raise InvalidInput(
            f"{filename} has {len(header):,} columns, more than {most:,}. Is it a table of "
            "comments, one on each row? "
            "Leave out the columns that are not needed."
        )
    names = UniqueNames("{} ({})")
    return tuple(
        names.unused(_tidied(cell) or f"column {number}") for number, cell in enumerate(header, 1)
    )


class UniqueNames:
    """Names that are unique: the second of a kind gets a number, in the manner of `pattern`."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._counts: dict[str, int] = {}

    def unused(self, name: str) -> str:
        candidate = name
        while candidate in self._counts:
            self._counts[name] += 1
            candidate = self._pattern.format(name, self._counts[name])
        self._counts[candidate] = 1
        return candidate


def _tidied(cell: str) -> str:
    return " ".join(cell.replace("\ufeff", "").replace("\u200b", "").split())
