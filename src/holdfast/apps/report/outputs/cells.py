"""Cells of a CSV file that no spreadsheet takes for a formula, and the way back.

A spreadsheet may calculate a cell that begins with `=`, `+`, `-` or `@` (in full width too), with
blanks, quotation marks or invisible characters before it, and one that begins with a tab or a line
break. Such a cell gets an apostrophe in front. Spreadsheets that separate with semicolons or tabs
would also split a cell there and calculate the rest, so the same holds after `;`, tab and line
break inside a cell, except for smileys.

`unguard` gives back exactly what was guarded: an apostrophe is only taken away where it would have
been put. Columns of numbers are never guarded: they hold our own figures."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence

Cell = str | int | float | None

APOSTROPHE = "'"
SIGNS = frozenset("=+-@")
BREAKS = frozenset("\t\r\n")
_SEPARATORS = re.compile(r"([;\t\r\n])")


def guard(text: str) -> str:
    """The text as a cell that is only ever text."""
    if _begins_badly(text):
        text = APOSTROPHE + text
    first, *rest = _SEPARATORS.split(text)
    return first + "".join(APOSTROPHE + part if _continues_badly(part) else part for part in rest)


def unguard(cell: str) -> str:
    """What `guard` was given."""
    first, *rest = _SEPARATORS.split(cell)
    text = first + "".join(part[1:] if _is_guarded(part) else part for part in rest)
    return text[1:] if text.startswith(APOSTROPHE) and _begins_badly(text[1:]) else text


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


def _is_guarded(part: str) -> bool:
    return part.startswith(APOSTROPHE) and _continues_badly(part[1:])


def _begins_badly(text: str) -> bool:
    before, sign, _ = _opening(text)
    return bool(sign) or not BREAKS.isdisjoint(before)


def _continues_badly(part: str) -> bool:
    _, sign, after = _opening(part)
    return bool(sign) and not after.startswith(")")


def _opening(text: str) -> tuple[str, str, str]:
    """What a spreadsheet may skip at the beginning, the sign that follows (or nothing), and what
    comes then."""
    end = next((at for at, char in enumerate(text) if not _skipped(char)), len(text))
    sign = text[end : end + 1]
    return (
        text[:end],
        sign if unicodedata.normalize("NFKC", sign)[:1] in SIGNS and sign else "",
        text[end + 1 :],
    )


def _skipped(char: str) -> bool:
    return char in "'\"＇＂" or char.isspace() or unicodedata.category(char) in ("Cc", "Cf")
