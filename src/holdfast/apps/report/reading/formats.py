"""What kind of file it is, by its content first and its name second."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from holdfast.errors import InvalidInput

CSV, TSV, JSON, JSONL, XLSX = "csv", "tsv", "json", "jsonl", "xlsx"

_ENDINGS = {".csv": CSV, ".tsv": TSV, ".tab": TSV, ".json": JSON, ".jsonl": JSONL, ".ndjson": JSONL}
_REFUSED = (
    (b"\x1f\x8b", "is compressed: unpack it first"),
    (b"%PDF", "is a PDF: save its table as .csv or .xlsx"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "is an old or an encrypted Excel file: save it as .xlsx, without a password",
    ),
)
_CONTROLS = bytes(code for code in range(32) if code not in (9, 10, 12, 13, 27))
FEWEST_CONTROLS, MOST_CONTROLS = 32, 0.05
_DOCUMENT = re.compile(r'\s*(\{\s*"|\[\s*[\[{"\]])')


def is_workbook(head: bytes, filename: str) -> bool:
    """Whether it is an Excel file. Raises InvalidInput for a file that no reader here
    understands."""
    for magic, remedy in _REFUSED:
        if head.startswith(magic):
            raise InvalidInput(f"{filename} {remedy}.")
    return head.startswith(b"PK\x03\x04")


def check_text(head: bytes, encoding: str, filename: str) -> None:
    """Raise InvalidInput for a file that is no text at all: one byte in twenty is a control
    character. A few in a table are read as they are."""
    if encoding.startswith(("utf-16", "utf-32")):
        return
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > max(FEWEST_CONTROLS, MOST_CONTROLS * len(head)):
        raise InvalidInput(
            f"{filename} is a binary file, not a table of text: save the comments as .csv, .tsv, "
            ".json, .jsonl or .xlsx."
        )


def format_of(text: str, filename: str) -> str:
    """The format of a text, from its beginning and its name."""
    named = _ENDINGS.get(PurePath(filename).suffix.lower())
    if named in (CSV, TSV):
        return named
    if named is None and not _DOCUMENT.match(text):
        return CSV
    return _json_or_lines(text, named)


def _json_or_lines(text: str, named: str | None) -> str:
    """One document, or one on every line: told by whether the first line is complete and more
    follow."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or lines[0].lstrip().startswith("["):
        return JSON if lines else named or JSON
    if len(lines) == 1 or not _is_complete(lines[0]):
        return JSONL if named == JSONL and not _opens_document(lines[0]) else JSON
    return JSONL


def _opens_document(line: str) -> bool:
    """Whether a JSON document that is laid out over several lines begins like this."""
    return line.strip() in ("{", "[")


def _is_complete(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
