"""How a table of text separates its cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

SEPARATORS = (",", ";", "\t", "|")
ONE_COLUMN = "\x1f"
"""Separates nothing: it does not occur in text. With it, a comma in a file of one column is just a
comma."""

_HINT = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
_LOOK = 200


@dataclass(frozen=True, slots=True)
class Dialect:
    separator: str
    padded: bool = False
    """Whether there are spaces between a separator and the quote that follows it."""
    hint: bool = False
    """Whether the first line only says which separator is used, as spreadsheets write it."""


@dataclass(frozen=True, slots=True)
class _DialectLook:
    separator: str
    known: bool
    even: float
    width: int

    @property
    def rank(self) -> tuple[bool, float, int]:
        return self.known, round(self.even, 1), self.width


def dialect_of(text: str, is_table: Callable[[list[str]], bool]) -> Dialect:
    """Look at the beginning of a file. `is_table` knows a header when it sees one: it outweighs
    every count."""
    hint = _HINT.match(text)
    if hint:
        return Dialect(hint[1], hint=True)
    lines = _whole_lines(text)
    looks = [look for separator in SEPARATORS if (look := _look(lines, separator, is_table))]
    best = max(looks, key=lambda look: look.rank, default=None)
    if best is None or not (best.known or best.even >= 0.5):
        return Dialect(ONE_COLUMN)
    return Dialect(best.separator, _is_padded(text, best.separator))


def _look(
    lines: list[str], separator: str, is_table: Callable[[list[str]], bool]
) -> _DialectLook | None:
    try:
        rows = [row for row in islice(csv.reader(lines, delimiter=separator), _LOOK) if row]
    except csv.Error:  # a cell longer than the module reads: a row or two will do
        rows = [line.rstrip("\r\n").split(separator) for line in lines[:2]]
    if not rows or len(rows[0]) < 2:
        return None
    width = len(rows[0])
    return _DialectLook(
        separator, is_table(rows[0]), sum(len(row) == width for row in rows) / len(rows), width
    )


def _whole_lines(text: str) -> list[str]:
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text.replace("\0", ""))
    return lines[:-1] if len(lines) > 1 and lines[-1][-1] not in "\r\n" else lines


def _is_padded(text: str, separator: str) -> bool:
    return text.count(f'{separator} "') > text.count(f'{separator}"')
