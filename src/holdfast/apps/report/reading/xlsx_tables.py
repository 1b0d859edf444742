"""Tables in Excel files: the first sheet that has comments."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.apps.report.reading.formats import XLSX
from holdfast.apps.report.reading.json_tables import plain_number
from holdfast.apps.report.reading.table import Table, UnreadableRow, column_names
from holdfast.apps.report.reading.zip_limits import refuse_bombs
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

LARGEST_FILE = 100_000_000


def workbook_table(
    opener: Callable[[], Iterable[bytes]], filename: str, is_table: Callable[[list[str]], bool]
) -> Table:
    data = _contents(opener(), filename)
    refuse_bombs(data, filename)
    with _understood(filename):
        sheet, rows = _sheet(data, filename, is_table)
        header = next(rows)
        columns = column_names(header, filename)
        return Table(
            XLSX,
            "",
            "",
            columns,
            sheet.height,
            lambda notes: _rows_below(sheet, len(columns), filename),
        )


def _rows_below(
    sheet: CalamineSheet, width: int, filename: str
) -> Iterator[list[str] | UnreadableRow]:
    with _understood(filename):
        rows = _rows(sheet)
        next(rows)
        for row in rows:
            yield row + [""] * (width - len(row))


def _sheet(
    data: bytes, filename: str, is_table: Callable[[list[str]], bool]
) -> tuple[CalamineSheet, Iterator[list[str]]]:
    """The first sheet with a column of comments; the first with anything in it, if none has."""
    from python_calamine import CalamineWorkbook

    workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    filled: CalamineSheet | None = None
    for name in workbook.sheet_names:
        sheet = workbook.get_sheet_by_name(name)
        header = next(_rows(sheet), None)
        if header is not None and is_table(header):
            return sheet, _rows(sheet)
        if header is not None and filled is None:
            filled = sheet
    if filled is None:
        raise InvalidInput(f"{filename} has no sheet with anything in it.")
    return filled, _rows(filled)


def _rows(sheet: CalamineSheet) -> Iterator[list[str]]:
    for cells in sheet.iter_rows():
        while cells and cells[-1] == "":  # a sheet is as wide as its widest row
            del cells[-1]
        if cells:
            yield [_string(cell) for cell in cells]


def _string(cell: Any) -> str:
    match cell:
        case str():
            return cell.replace("\0", "\ufffd")
        case bool():
            return "true" if cell else "false"
        case float():
            return plain_number(cell)
        case datetime() | date() | time():
            return cell.isoformat()
        case timedelta():
            return str(cell)
        case _:
            return str(cell)


def _contents(chunks: Iterable[bytes], filename: str) -> bytes:
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > LARGEST_FILE:
            raise InvalidInput(
                f"{filename} is an Excel file of more than {LARGEST_FILE / 1e6:,.0f} MB: save the "
                "sheet as .csv."
            )
    return bytes(data)


@contextmanager
def _understood(filename: str) -> Iterator[None]:
    """Whatever goes wrong inside the reader of Excel files, a panic of its native part included, is
    about the file."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, InvalidInput) or not _is_about_the_file(error):
            raise
        raise InvalidInput(
            f"{filename} can't be read as an Excel file: {error}. Save it as .csv instead."
        ) from error


def _is_about_the_file(error: BaseException) -> bool:
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
