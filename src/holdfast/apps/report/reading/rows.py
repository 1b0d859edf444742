"""From the cells of a row to a comment: who said it, under which id, and what else is known about
it."""

from __future__ import annotations

import re

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.reading.columns import LONGEST_FACET, Columns
from holdfast.apps.report.reading.hash_set import HashSet
from holdfast.apps.report.reading.notes import Note, Notes

LONGEST_ID = 200

_UNUSUAL = re.compile(
    r"(?P<nobody>[\W_]*|anonym|anonyme|anonymous|an[oó]nimo|anon|n/a|null|unknown|匿名|аноним)$"
    r"|(?P<ours>anonymous #\d+)$",
    re.IGNORECASE,
)
_INEXACT = re.compile(r"\.0+$|[\s,'’]")


class Ids:
    """An id for every row, unique in the file."""

    def __init__(self, columns: Columns, notes: Notes) -> None:
        self._at = columns.id
        self._notes = notes
        self._taken = HashSet()
        self._repeats: dict[str, int] = {}

    def of(self, cells: list[str] | None, row: int) -> str:
        """The id in the file; without such a column the index of the row from 0, as Talk to the
        City has it."""
        if self._at is None:
            return str(row - 1)
        id = cells[self._at].strip()[:LONGEST_ID] if cells else ""
        if not id:
            self._notes[Note.BLANK_ID] += cells is not None
            id = f"row-{row}"
        return id if self._taken.add(hash(id)) else self._numbered(id)

    def _numbered(self, id: str) -> str:
        self._notes[Note.REPEATED_ID] += 1
        while True:
            self._repeats[id] = number = self._repeats.get(id, 1) + 1
            if self._taken.add(hash(f"{id}#{number}")):
                return f"{id}#{number}"


def speaker_of(cells: list[str], columns: Columns) -> str:
    """Who said it, as the file has it; empty when it names nobody."""
    if columns.speaker is None:
        return ""
    name = cells[columns.speaker].strip()
    unusual = _UNUSUAL.match(name)
    if not unusual:
        return name
    return (
        f"{name} (given)" if unusual["ours"] else ""
    )  # a name like ours must not become one of ours


def is_moderated_out(cells: list[str], columns: Columns) -> bool:
    """Whether Polis moderators rejected it."""
    return columns.moderated is not None and cells[columns.moderated].strip() in ("-1", "-1.0")


def comment_of(
    id: str, row: int, text: str, speaker: str, cells: list[str], columns: Columns
) -> Comment:
    return Comment(
        id=id,
        row=row,
        text=text,
        speaker=speaker or f"Anonymous #{row}",
        anonymous=not speaker,
        agrees=_count(cells, columns.agrees),
        disagrees=_count(cells, columns.disagrees),
        passes=_count(cells, columns.passes),
        video=_stripped(cells, columns.video),
        timestamp=_stripped(cells, columns.timestamp),
        facets={
            name: value
            for at, name in columns.facets
            if (value := cells[at].strip()[:LONGEST_FACET])
        },
        question=columns.asked,
    )


def _stripped(cells: list[str], at: int | None) -> str:
    return "" if at is None else cells[at].strip()


def _count(cells: list[str], at: int | None) -> int | None:
    """A number of votes, written in whatever way: 12, 12.0, 1,204. None if it is none."""
    if at is None:
        return None
    digits = cells[at]
    if not digits.isdecimal():
        digits = _INEXACT.sub("", digits.strip())
    return int(digits) if digits.isdecimal() and len(digits) <= 12 else None
