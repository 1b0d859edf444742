"""Tables in Excel files: the first sheet that has comments."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput
from holdfast.pipelines.report.reading.documents import plain_number
from holdfast.pipelines.report.reading.formats import XLSX
from holdfast.pipelines.report.reading.table import Broken, Table, column_names

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

LARGEST_FILE = 100_000_000
LARGEST_CONTENT = 1_000_000_000
"""Bytes of the file, and of what is packed into it."""

_BLOCK = 1 << 20


def workbook_table(
    opener: Callable[[], Iterable[bytes]], filename: str, is_table: Callable[[list[str]], bool]
) -> Table:
    data = _contents(opener(), filename)
    _refuse_bombs(data, filename)
    with _understood(filename):
        sheet, rows = _sheet(data, filename, is_table)
        header = next(rows)
        columns = column_names(header, filename)
        return Table(XLSX, "", "", columns, sheet.height, lambda notes: _rows_below(sheet, filename))


def _rows_below(sheet: CalamineSheet, filename: str) -> Iterator[list[str] | Broken]:
    with _understood(filename):
        rows = _rows(sheet)
        next(rows)
        yield from rows


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
        row = [_string(cell) for cell in cells]
        if any(row):
            yield row


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
                f"{filename} is an Excel file of more than {LARGEST_FILE / 1e6:,.0f} MB: save the sheet as .csv."
            )
    return bytes(data)


def _refuse_bombs(data: bytes, filename: str) -> None:
    """Unpack everything, keeping nothing: what the archive says about its sizes need not be true."""
    left = LARGEST_CONTENT
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                left -= _unpacked(archive, member, left)
                if left < 0:
                    raise InvalidInput(
                        f"{filename} unpacks to more than {LARGEST_CONTENT / 1e6:,.0f} MB, which is refused as unsafe: "
                        "save the sheet as .csv."
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OSError) as error:
        raise InvalidInput(f"{filename} looks like an Excel file and can't be unpacked: {error}.") from None


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> int:
    if member.file_size > most:
        return member.file_size
    member.file_size = most + 1  # else only as much is unpacked as the archive says that there is
    total = 0
    with archive.open(member) as content:
        while total <= most and (block := content.read(_BLOCK)):
            total += len(block)
    return total


@contextmanager
def _understood(filename: str) -> Iterator[None]:
    """Whatever goes wrong inside the reader of Excel files, a panic of its native part included, is about the file."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, InvalidInput) or not _is_about_the_file(error):
            raise
        raise InvalidInput(f"{filename} can't be read as an Excel file: {error}. Save it as .csv instead.") from error


def _is_about_the_file(error: BaseException) -> bool:
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
