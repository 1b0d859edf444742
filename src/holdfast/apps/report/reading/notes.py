"""What a careful person would want to know about a file: counted while it is read, told in
sentences."""

from __future__ import annotations

from collections import Counter
from enum import Enum


class Note(Enum):
    """Something noticed about rows; the sentence begins with how many."""

    REPAIRED = "had quotes that were not closed or not doubled, which were read as they stand"
    SURPLUS = (
        "had more cells than the header; what followed the comment in the last column was read as "
        "part of it"
    )
    IGNORED = "had more cells than the header; the surplus cells were left out"
    SHORT = "had fewer cells than the header; the missing ones were read as empty"
    CUT = "had a line of more than 4 million characters, which was cut there"
    UNREADABLE = "had characters that could not be read; each of them is shown as �"
    REPEATED_ID = "had an id that was used before; a number was added to it (7 became 7#2)"
    BLANK_ID = "had no id and got one (row-12)"
    NEW_KEYS = "had keys that none of the first 1,000 rows has; these keys were left out"
    ECHO = (
        "without a name said word for word what another one had said; each counts as a person of "
        "its own"
    )


class Notes(Counter[Note]):
    """How often each thing was noticed."""

    def warnings(self) -> list[str]:
        return [f"{_rows(self[note])} {note.value}." for note in Note if self[note]]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
