"""Tables of text with separators: CSV and its relatives, as programs and people really write
them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator

from holdfast.apps.report.reading.dialect import ONE_COLUMN, Dialect, dialect_of
from holdfast.apps.report.reading.encoding import text_of
from holdfast.apps.report.reading.formats import CSV, TSV
from holdfast.apps.report.reading.lines import (
    LONGEST_LINE,
    LONGEST_RECORD,
    RecordTooLong,
    RewindableLines,
)
from holdfast.apps.report.reading.notes import Note, Notes
from holdfast.apps.report.reading.quote_repair import QuoteRepair
from holdfast.apps.report.reading.survey import FileSurvey
from holdfast.apps.report.reading.table import MOST_COLUMNS, Table, UnreadableRow, column_names
from holdfast.errors import InvalidInput

csv.field_size_limit(LONGEST_LINE + LONGEST_RECORD)  # Python's own is 131,072 for all of a process


class DelimitedFile:
    """A file of which encoding and separator are known."""

    def __init__(
        self, opener: Callable[[], Iterable[bytes]], encoding: str, dialect: Dialect
    ) -> None:
        self._open = opener
        self._encoding = encoding
        self._dialect = dialect

    def header(self, filename: str) -> list[str]:
        for row in self._records(Notes(), None):
            if isinstance(row, list):
                return row
        raise InvalidInput(f"{filename} is empty: it has no row that names the columns.")

    def rows(self, notes: Notes, width: int) -> Iterator[list[str] | UnreadableRow]:
        records = self._records(notes, width)
        next(records, None)
        return records

    def _records(self, notes: Notes, width: int | None) -> Iterator[list[str] | UnreadableRow]:
        """All rows, the header among them; lines without anything on them are none."""
        with text_of(self._open(), self._encoding) as text:
            if self._dialect.hint:
                text.readline()
            lines = RewindableLines(text, notes)
            reader = csv.reader(
                lines,
                delimiter=self._dialect.separator,
                strict=True,
                skipinitialspace=self._dialect.padded,
            )
            yield from _records(
                lines, reader, QuoteRepair(lines, self._dialect.separator), width, notes
            )


def _records(
    lines: RewindableLines,
    reader: Iterator[list[str]],
    repair: QuoteRepair,
    width: int | None,
    notes: Notes,
) -> Iterator[list[str] | UnreadableRow]:
    while True:
        lines.begin()
        try:
            row = next(reader)
        except StopIteration:
            return
        except (csv.Error, RecordTooLong):
            row = repair.cells(width)
            notes[Note.REPAIRED] += isinstance(row, list)
        if row:
            yield row


def delimited_table(
    opener: Callable[[], Iterable[bytes]],
    filename: str,
    survey: FileSurvey,
    encoding: str,
    head: str,
    is_table: Callable[[list[str]], bool],
    most: int = MOST_COLUMNS,
) -> Table:
    """The table in a file of text whose beginning is `head`."""
    dialect = dialect_of(head, is_table)
    file = DelimitedFile(opener, encoding, dialect)
    columns = column_names(file.header(filename), filename, most)
    return Table(
        format=TSV if dialect.separator == "\t" else CSV,
        encoding=encoding,
        separator="" if dialect.separator == ONE_COLUMN else dialect.separator,
        columns=columns,
        bound=survey.breaks + 1,
        rows=lambda notes: file.rows(notes, len(columns)),
    )
