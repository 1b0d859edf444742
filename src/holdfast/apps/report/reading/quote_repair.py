"""Rows whose quotes are wrong, read as their writer meant them.

CSV doubles a quote inside quotes. Many programs and most people do not, and a single quote that is
never closed makes everything after it one cell. So a record that breaks the rule is read again, a
line at a time, the likeliest reading first: a quote closes a cell only in front of a separator or
the end; then the same over several lines, unless these look like rows of their own; then as if
quotes meant nothing. What fits the header in none of these ways is broken, and reading goes on with
the next line."""

from __future__ import annotations

import re

from holdfast.apps.report.reading.lines import RecordTooLong, RewindableLines
from holdfast.apps.report.reading.table import UnreadableRow

MAX_UNREPAIRED = 20
"""How often a closing quote is looked for in vain before a file is read line by line, …"""
TRIES = 50
"""… and in how many lines with quotes, …"""
ROWS = 3
"""… and how many rows of their own prove that the lines are no part of a cell."""

_QUOTES = re.compile('"+')


class QuoteRepair:
    def __init__(self, lines: RewindableLines, separator: str) -> None:
        self._lines = lines
        self._separator = separator
        self._repairs_left = MAX_UNREPAIRED

    def cells(self, width: int | None) -> list[str] | UnreadableRow:
        """The row that begins with the first line of the record; lines that do not belong to it are
        put back.

        A header has no `width` to fit.
        """
        first = self._lines.record[0]
        self._lines.back_to(1)
        cells = (
            self._fitting(first, width)
            or self._over_lines(first, width)
            or self._without_quotes(first, width)
        )
        return cells or UnreadableRow(
            "a quote is opened in this row and not closed properly", first.strip()
        )

    def _fitting(self, record: str, width: int | None) -> list[str] | None:
        cells = cells_of(record, self._separator)
        return cells if cells and len(cells) == (width or len(cells)) else None

    def _over_lines(self, first: str, width: int | None) -> list[str] | None:
        if self._repairs_left <= 0:
            return None
        cells = self._search(first, width)
        if cells is None:
            self._repairs_left -= 1
            self._lines.back_to(1)
        return cells

    def _search(self, first: str, width: int | None) -> list[str] | None:
        parts, rows, tries = [first], 0, 0
        try:
            for line in self._lines:
                parts.append(line)
                rows += bool(self._fitting(line, width) or self._without_quotes(line, width))
                tries += '"' in line
                like_rows = 2 * rows >= len(parts) - 1
                cells = self._fitting("".join(parts), width) if '"' in line else None
                if cells or tries > TRIES or (like_rows and rows >= ROWS):
                    return None if like_rows else cells
        except RecordTooLong:
            pass
        return None

    def _without_quotes(self, first: str, width: int | None) -> list[str] | None:
        cells = _without_end(first).split(self._separator)
        return cells if len(cells) == (width or len(cells)) else None


def cells_of(record: str, separator: str) -> list[str] | None:
    """The cells of a record, where a quote closes a cell only in front of a separator or the end;
    None if none does."""
    body, cells, at = _without_end(record), [], 0
    while True:
        parsed = (
            _quoted(body, at + 1, separator)
            if body.startswith('"', at)
            else _plain(body, at, separator)
        )
        if parsed is None:
            return None
        cell, at = parsed
        cells.append(cell)
        if at >= len(body):
            return cells
        at += 1


def _plain(body: str, at: int, separator: str) -> tuple[str, int] | None:
    end = body.find(separator, at)
    cell = body[at:end] if end >= 0 else body[at:]
    return None if "\n" in cell or "\r" in cell else (cell, at + len(cell))


def _quoted(body: str, at: int, separator: str) -> tuple[str, int] | None:
    parts: list[str] = []
    for quotes in _QUOTES.finditer(body, at):
        start, end = quotes.span()
        after = end
        while body.startswith(" ", after):
            after += 1
        closed = after == len(body) or body[after] == separator
        parts.append(body[at:start] + '"' * ((end - start + (not closed)) // 2))
        if closed:
            return "".join(parts), after
        at = end
    return None


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
