"""Physical lines of a text that can be put back: what a table is read from when a quote turns out
to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from holdfast.apps.report.reading.notes import Note, Notes

LONGEST_LINE = 4_000_000
LONGEST_RECORD = 4_000_000
"""Characters of a record with several lines. A quote that is open for longer was never meant to
be."""


class RecordTooLong(Exception):
    """The record in progress goes on and on."""


class RewindableLines(Iterator[str]):
    """Lines with their ends. `record` holds the ones since `begin`, so that they can be looked at
    again."""

    def __init__(self, text: TextIO, notes: Notes) -> None:
        self._readline = text.readline
        self._notes = notes
        self._again: list[str] = []
        self._size = 0
        self.record: list[str] = []

    def begin(self) -> None:
        if self.record:
            self.record.clear()
            self._size = 0

    def back_to(self, kept: int) -> None:
        """Put back all lines of the record but the first ones."""
        self._again.extend(reversed(self.record[kept:]))
        del self.record[kept:]
        self._size = sum(map(len, self.record[:-1]))

    def __next__(self) -> str:
        if self.record:
            self._measure()
        line = self._again.pop() if self._again else self._readline(LONGEST_LINE)
        if not line:
            raise StopIteration
        if len(line) == LONGEST_LINE or "\0" in line:
            line = self._mended(line)
        self.record.append(line)
        return line

    def _measure(self) -> None:
        self._size += len(self.record[-1])
        if self._size > LONGEST_RECORD:
            raise RecordTooLong

    def _mended(self, line: str) -> str:
        if len(line) == LONGEST_LINE and line[-1] not in "\r\n":
            self._notes[Note.CUT] += 1
            self._skip_rest()
        return line.replace("\0", "\ufffd")

    def _skip_rest(self) -> None:
        rest = self._readline(LONGEST_LINE)
        while rest and rest[-1] not in "\r\n":
            rest = self._readline(LONGEST_LINE)
