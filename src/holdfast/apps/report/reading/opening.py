"""From the bytes of a file to its table, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.apps.report.reading.csv_tables import delimited_table
from holdfast.apps.report.reading.encoding import encoding_of, text_of
from holdfast.apps.report.reading.formats import check_text, format_of, is_workbook
from holdfast.apps.report.reading.json_tables import document_table, lines_table
from holdfast.apps.report.reading.survey import FileSurvey
from holdfast.apps.report.reading.table import MOST_COLUMNS, Table
from holdfast.apps.report.reading.xlsx_tables import workbook_table
from holdfast.errors import InvalidInput

Opener = Callable[[], Iterable[bytes]]


def open_table(
    opener: Opener,
    filename: str,
    survey: FileSurvey,
    is_table: Callable[[Sequence[str]], bool],
    most_columns: int = MOST_COLUMNS,
) -> Table:
    """Find out what it is and read its header. `is_table` knows the header of a table that is
    looked for."""
    if not survey.bytes:
        raise InvalidInput(f"{filename} is empty.")
    if is_workbook(survey.head, filename):
        return workbook_table(opener, filename, is_table)
    encoding = encoding_of(survey)
    check_text(survey.head, encoding, filename)
    with text_of([survey.head], encoding) as text:
        head = text.read()
    match format_of(head, filename):
        case "json":
            return document_table(opener, filename, survey, encoding)
        case "jsonl":
            return lines_table(opener, filename, survey, encoding)
        case _:
            return delimited_table(opener, filename, survey, encoding, head, is_table, most_columns)
