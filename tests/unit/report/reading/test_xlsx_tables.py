"""Excel files: the sheet with the comments, and nothing that explodes."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from html import escape

import pytest

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading import xlsx_tables, zip_limits
from holdfast.errors import InvalidInput

TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def cell(value: object, row: int, column: int) -> str:
    reference = f"{chr(65 + column)}{row}"
    if isinstance(value, int | float):
        return f'<c r="{reference}"><v>{value}</v></c>'
    return (
        f'<c r="{reference}" t="inlineStr"><is><t '
        f'xml:space="preserve">{escape(str(value))}</t></is></c>'
    )


def sheet(rows: list[list[object]]) -> str:
    cells = (
        "".join(cell(value, number, at) for at, value in enumerate(row) if value != "")
        for number, row in enumerate(rows, 1)
    )
    lines = (f'<row r="{number}">{text}</row>' for number, text in enumerate(cells, 1))
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def excel(**sheets: list[list[object]]) -> bytes:
    file = io.BytesIO()
    entries = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1)
    )
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", TYPES)
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" '
            f'Type="{OFFICE}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{entries}</sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{RELATIONS}">{relations}</Relationships>',
        )
        for number, rows in enumerate(sheets.values(), 1):
            book.writestr(f"xl/worksheets/sheet{number}.xml", sheet(rows))
    return file.getvalue()


COMMENTS = [
    ["id", "author", "comment", "agrees"],
    [1, "ann", "First, of all\nwords", 3],
    [],
    [2, "", "=1+1 😀", 4.0],
]


@pytest.mark.parametrize("name", ["x.xlsx", "-", "x.csv"])
def test_the_first_sheet_with_comments_is_read(read, name):
    comment_set = read(
        excel(About=[["Read me"], ["please"]], Data=COMMENTS, More=[["comment"], ["other words"]]),
        name,
    )
    assert comment_set.texts == ["First, of all\nwords", "=1+1 😀"]
    assert [(comment.id, comment.agrees) for comment in comment_set.comments] == [
        ("1", 3),
        ("2", 4),
    ]
    assert comment_set.reader.source.format == "xlsx"


def test_rows_without_a_comment_are_accounted_for(read):
    assert read(excel(Data=[["id", "comment"], [1, "some words"], [2, ""]]), "x.xlsx").fates == [
        Fate.KEPT,
        Fate.EMPTY,
    ]


def test_a_workbook_without_comments_gets_its_columns_listed(read):
    with pytest.raises(InvalidInput, match="Columns found: a, b"):
        read(excel(One=[["a", "b"], [1, 2]], Two=[]), "x.xlsx")


def test_an_empty_workbook_is_refused(read):
    with pytest.raises(InvalidInput, match="no sheet with anything in it"):
        read(excel(One=[]), "x.xlsx")


def with_cell(data: bytes, reference: str, content: str) -> bytes:
    """The same file with one cell more."""
    row = reference.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    more = f'<row r="{row}"><c r="{reference}" {content}</c></row></sheetData>'.encode()
    return changed(data, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b"</sheetData>", more))


def changed(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.namelist():
            new.writestr(member, change(old.read(member)) if member == name else old.read(member))
    return file.getvalue()


def test_a_bomb_is_refused_before_it_is_opened(read, monkeypatch):
    monkeypatch.setattr(zip_limits, "LARGEST_CONTENT", 100_000)
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        read(excel(Data=[["comment"], ["bang " * 100_000]]), "x.xlsx")


def test_a_bomb_that_lies_about_its_size_is_refused(read, monkeypatch):
    monkeypatch.setattr(zip_limits, "LARGEST_CONTENT", 100_000)
    data = excel(Data=[["comment"], ["bang " * 100_000]])
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        size = file.getinfo("xl/worksheets/sheet1.xml").file_size
    lying = data.replace(struct.pack("<L", size), struct.pack("<L", 500))
    assert lying != data
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        read(lying, "x.xlsx")


@pytest.mark.parametrize("place", ["XFD1048576", "A99999999", "ZZZ20000", "xfd1048576"])
def test_a_cell_far_away_is_refused(read, place):
    """Opened, it would take a rectangle of billions of cells."""
    data = with_cell(excel(Data=COMMENTS), "B9", "><v>1</v>")
    far = changed(
        data, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b'"B9"', f'"{place}"'.encode())
    )
    with pytest.raises(InvalidInput, match="empty ones between others counted"):
        read(far, "x.xlsx")


def test_a_cell_at_some_distance_is_fine(read):
    assert read(with_cell(excel(Data=COMMENTS), "ZZ900", "><v>1</v>"), "x.xlsx").texts == [
        "First, of all\nwords",
        "=1+1 😀",
    ]


def test_a_long_text_that_is_named_often_is_refused(read, monkeypatch):
    long = " ".join(["words"] * 500)
    texts = f'<sst xmlns="{MAIN}"><si/><si><t>{long}</t></si><si><t>comment</t></si></sst>'
    data = with_cell(excel(Data=[]), "A1", 't="s"><v>2</v>')
    for row in range(2, 30):
        data = with_cell(data, f"A{row}", 't="s"><v>1</v>')
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as more:
        more.writestr("xl/sharedStrings.xml", texts)
    assert read(file.getvalue(), "x.xlsx").texts == [long] * 28
    monkeypatch.setattr(zip_limits, "LARGEST_TEXT", 50_000)
    with pytest.raises(InvalidInput, match="MB of text"):
        read(file.getvalue(), "x.xlsx")


@pytest.mark.parametrize("keep", [4, 30, 300, 900])
def test_half_a_workbook_is_refused(read, keep):
    with pytest.raises(InvalidInput, match=r"x\.xlsx"):
        read(excel(Data=COMMENTS)[:keep], "x.xlsx")


def test_an_archive_that_is_no_workbook_is_refused(read):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("hello.txt", "hello")
    with pytest.raises(InvalidInput, match="can't be read as an Excel file"):
        read(file.getvalue(), "x.xlsx")


def test_a_large_workbook_names_the_way_out(read, monkeypatch):
    monkeypatch.setattr(xlsx_tables, "LARGEST_FILE", 100)
    with pytest.raises(InvalidInput, match=r"save the sheet as \.csv"):
        read(excel(Data=COMMENTS), "x.xlsx")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x1f\x8b\x08\x00", "unpack"),
        (b"%PDF-1.7", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx"),
    ],
)
def test_other_files_are_refused_by_name(read, data, word):
    with pytest.raises(InvalidInput, match=word):
        read(data + b"rest", "x.csv")
