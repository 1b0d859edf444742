"""`report.json`: the whole report as one document, written so that two of them can be compared line
by line."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from holdfast.apps.report.model.document import SCHEMA, Report
from holdfast.errors import InvalidInput

_FAMILY = "holdfast.report/"


def to_json(report: Report) -> bytes:
    """The document: fields in the order of the model, one line for each of them and for each
    element of a list.

    The same report gives the same bytes.
    """
    members = (
        b"%s: %s" % (_encode(field.name), _lines(getattr(report, field.name)))
        for field in fields(report)
    )
    return b"{\n" + b",\n".join(members) + b"\n}\n"


def from_json(data: bytes) -> Report:
    """The report in a document. Raises InvalidInput that says what is wrong and what to do."""
    _check_schema(_decode(data))
    try:
        return msgspec.json.decode(_without_mark(data), type=Report)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"This report.json is damaged or was edited by hand: {error}. Build it again."
        ) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document (draft 2020-12). Readers ignore fields they do not know."""
    schema = msgspec.json.schema(Report)
    schema["$defs"]["Report"]["properties"]["schema"]["const"] = SCHEMA
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **schema}


def _lines(value: Any) -> bytes:
    if not isinstance(value, tuple) or not value:
        return _encode(value)
    return b"[\n  " + b",\n  ".join(_encode(element) for element in value) + b"\n]"


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(_without_mark(data))
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"This is not JSON: {error}. Give the report.json of a finished report."
        ) from None


def _without_mark(data: bytes) -> bytes:
    """Some editors put a byte order mark in front when they save a file."""
    return data.removeprefix(b"\xef\xbb\xbf")


def _check_schema(document: Any) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith(_FAMILY):
        raise InvalidInput(
            f"This report has the schema {schema}; this holdfast reads {SCHEMA}. "
            f"{_remedy(schema)} or build the report again from its comments."
        )
    if isinstance(document, dict) and {"data", "metadata"} <= document.keys():
        raise InvalidInput(
            "This looks like a report of Talk to the City. holdfast writes that format but does "
            "not read it: "
            "build a report from the comments instead."
        )
    raise InvalidInput(f"This JSON is not a report of holdfast: it has no schema {SCHEMA}.")


def _remedy(schema: str) -> str:
    newer = schema.removeprefix(_FAMILY)
    if newer.isdecimal() and int(newer) > int(SCHEMA.removeprefix(_FAMILY)):
        return "It was written by a newer holdfast: update this one,"
    return "It was written by an older holdfast: use that one,"
