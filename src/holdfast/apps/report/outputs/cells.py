"""Cells of a CSV file that no spreadsheet takes for a formula, and the way back.

A spreadsheet may calculate a cell that begins with `=`, `+`, `-` or `@` (in full width too), with
blanks, quotation marks or invisible characters before it, and one that begins with a tab or a line
break. Such a cell gets an apostrophe in front; nothing inside a cell is ever changed. `quotes.csv`
says which of its texts got one.

`unguard` gives back exactly what was guarded: an apostrophe is only taken away where it would have
been put. Columns of numbers are never guarded: they hold our own figures."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

Cell = str | int | float | None

APOSTROPHE = "'"
SIGNS = frozenset("=+-@")
BREAKS = frozenset("\t\r\n")


def guard(text: str) -> str:
    """The text as a cell that is only ever text."""
    return APOSTROPHE + text if is_guarded(text) else text


def is_guarded(text: str) -> bool:
    """Whether a text gets an apostrophe in front: its beginning could be calculated."""
    before, sign = _opening(text)
    return bool(sign) or not BREAKS.isdisjoint(before)


def unguard(cell: str) -> str:
    """What `guard` was given."""
    return cell[1:] if cell.startswith(APOSTROPHE) and is_guarded(cell[1:]) else cell


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """A CSV file as RFC 4180 has it, in UTF-8 with the mark that makes Excel read it as UTF-8.

    Text is guarded; numbers are written as they are; None is an empty cell.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([guard(name) for name in columns])
    writer.writerows(
        [guard(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return out.getvalue().encode("utf-8-sig")


def _opening(text: str) -> tuple[str, str]:
    """What a spreadsheet may skip at the beginning, and the sign that follows, or nothing."""
    end = next((at for at, char in enumerate(text) if not _skipped(char)), len(text))
    sign = text[end : end + 1]
    is_sign = sign and unicodedata.normalize("NFKC", sign)[:1] in SIGNS
    return text[:end], sign if is_sign else ""


def _skipped(char: str) -> bool:
    return char in "'\"＇＂" or char.isspace() or unicodedata.category(char) in ("Cc", "Cf")
