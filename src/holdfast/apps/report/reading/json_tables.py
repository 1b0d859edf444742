"""Tables in JSON: one document, read whole, or a document on every line, read as it comes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from holdfast.apps.report.reading.encoding import text_of
from holdfast.apps.report.reading.formats import JSON, JSONL
from holdfast.apps.report.reading.lines import RewindableLines
from holdfast.apps.report.reading.notes import Note, Notes
from holdfast.apps.report.reading.survey import FileSurvey
from holdfast.apps.report.reading.table import Table, UnreadableRow, column_names
from holdfast.errors import InvalidInput

LARGEST_DOCUMENT = 200_000_000
"""Bytes of a document that is read whole."""
STRING_COLUMN = "comment"
"""What a string that stands where a row could be is taken for."""

_LOOK = 1_000
_LISTS = ("data", "comments", "rows", "items", "responses")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

Record = dict[str, Any] | str | UnreadableRow


def document_table(
    opener: Callable[[], Iterable[bytes]], filename: str, survey: FileSurvey, encoding: str
) -> Table:
    """The rows of a JSON document: a list, or an object that holds one."""
    if survey.bytes > LARGEST_DOCUMENT:
        raise InvalidInput(
            f"{filename} is {survey.bytes / 1e6:,.0f} MB of JSON, and a document is read whole, up "
            "to "
            f"{LARGEST_DOCUMENT / 1e6:,.0f} MB. Write one object on every line instead (.jsonl), "
            "which has no limit."
        )
    with text_of(opener(), encoding) as text:
        records = [_record(value) for value in _rows_in(_parsed(text.read(), filename), filename)]
    keys = _keys(records)
    columns = _names(keys, filename)
    return Table(
        JSON, encoding, "", columns, len(records), lambda notes: _rows(records, keys, notes)
    )


def lines_table(
    opener: Callable[[], Iterable[bytes]], filename: str, survey: FileSurvey, encoding: str
) -> Table:
    """Rows as JSON, one on each line. Their first thousand say which columns there are."""

    def records(notes: Notes) -> Iterator[Record]:
        with text_of(opener(), encoding) as text:
            lines = RewindableLines(text, notes)
            for line in lines:
                lines.begin()
                if line.strip():
                    yield _record_on(line)

    keys = _keys(islice(records(Notes()), _LOOK))
    columns = _names(keys, filename)
    return Table(
        JSONL,
        encoding,
        "",
        columns,
        survey.breaks + 1,
        lambda notes: _rows(records(notes), keys, notes),
    )


def _parsed(text: str, filename: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInput(
            f"{filename} is JSON nested too deeply to be a table of comments."
        ) from None
    except ValueError as error:
        raise InvalidInput(
            f"{filename} is not valid JSON: {error}. Correct it there, or give a CSV file."
        ) from None


def _rows_in(document: Any, filename: str) -> list[Any]:
    if isinstance(document, dict):
        records = _list_in(document)
        return [document] if records is None else _untagged(records)
    if isinstance(document, list):
        return document
    raise InvalidInput(
        f"{filename} holds a single JSON value; a list of objects or of strings is needed."
    )


def _list_in(document: dict[str, Any], depth: int = 3) -> list[Any] | None:
    """The list that is likeliest to be the rows: under one of the usual names, inside an object
    that has one, or else the longest list of objects."""
    named = [document[name] for name in _LISTS if name in document]
    others = [value for name, value in document.items() if name not in _LISTS]
    for value in named:
        if isinstance(value, list):
            return value
    if depth:
        for value in (*named, *others):
            if isinstance(value, dict) and (records := _list_in(value, depth - 1)) is not None:
                return records
    return _list_of_objects(others)


def _list_of_objects(values: Sequence[Any]) -> list[Any] | None:
    """The longest list of objects, whatever its name; none beside a text, which makes the whole
    object a row."""
    if any(isinstance(value, str) and " " in value.strip() for value in values):
        return None
    lists = [
        value
        for value in values
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    ]
    return max(lists, key=len, default=None)


def _untagged(records: list[Any]) -> list[Any]:
    """Talk to the City writes a list of rows as `["csv", rows]`."""
    return (
        records[1]
        if len(records) == 2 and isinstance(records[0], str) and isinstance(records[1], list)
        else records
    )


def _record_on(line: str) -> Record:
    try:
        return _record(json.loads(line))
    except RecursionError:
        return UnreadableRow("this line is JSON nested too deeply", line.strip())
    except ValueError as error:
        return UnreadableRow(f"this line is not valid JSON: {error}", line.strip())


def _record(value: Any) -> Record:
    if isinstance(value, dict):
        return dict(_flattened(value))
    if isinstance(value, str):
        return value
    return UnreadableRow("neither an object nor a string", _string(value))


def _flattened(fields: dict[str, Any], path: str = "", depth: int = 3) -> Iterator[tuple[str, Any]]:
    """Objects inside a row become columns of their own: `comment.text`, `author.name`."""
    for name, value in fields.items():
        if isinstance(value, dict) and value and depth:
            yield from _flattened(value, f"{path}{name}.", depth - 1)
        else:
            yield f"{path}{name}", value


def _keys(records: Iterable[Record]) -> list[str]:
    keys: dict[str, None] = {}
    for record in records:
        if isinstance(record, str):
            keys[STRING_COLUMN] = None
        elif isinstance(record, dict):
            keys.update(dict.fromkeys(record))
    return list(keys)


def _names(keys: list[str], filename: str) -> tuple[str, ...]:
    return column_names([_UNSTORABLE.sub("\ufffd", key) for key in keys], filename)


def _rows(
    records: Iterable[Record], keys: list[str], notes: Notes
) -> Iterator[list[str] | UnreadableRow]:
    known = frozenset(keys)
    for record in records:
        if isinstance(record, UnreadableRow):
            yield record
            continue
        fields = {STRING_COLUMN: record} if isinstance(record, str) else record
        if not fields.keys() <= known:
            notes[Note.NEW_KEYS] += 1
        yield [_string(fields.get(key)) for key in keys]


def _string(value: Any) -> str:
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case None:
            return ""
        case float():
            return plain_number(value)
        case _:
            return _UNSTORABLE.sub("\ufffd", _json(value))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def plain_number(value: float) -> str:
    """7 rather than 7.0, which is what programs make of 7."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
