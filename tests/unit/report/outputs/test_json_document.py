"""The document is stable, comes back as it was, and says clearly why it can't be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from holdfast.apps.report.model.document import SCHEMA, Report
from holdfast.apps.report.outputs.json_document import from_json, json_schema, to_json
from holdfast.errors import InvalidInput


def test_a_report_comes_back_as_it_was(report: Report) -> None:
    assert from_json(to_json(report)) == report


def test_a_report_of_nothing_comes_back_too(build: Callable[..., Report]) -> None:
    assert from_json(to_json(build([], []))) == build([], [])


def test_the_same_report_gives_the_same_bytes(report: Report, build: Callable[..., Report]) -> None:
    assert to_json(report) == to_json(build())
    assert to_json(from_json(to_json(report))) == to_json(report)


def test_fields_come_in_the_order_of_the_model_one_on_each_line(report: Report) -> None:
    document = to_json(report)
    assert list(json.loads(document)) == [field.name for field in fields(Report)]
    lines = document.decode().split("\n")
    assert lines[1] == f'"schema": "{SCHEMA}",'
    assert sum(line.startswith('  {"id":"') for line in lines) >= len(report.comments)


def test_a_byte_order_mark_is_no_obstacle(report: Report) -> None:
    assert from_json(b"\xef\xbb\xbf" + to_json(report)) == report


def test_fields_that_a_later_version_adds_are_ignored(report: Report) -> None:
    document = json.loads(to_json(report)) | {"weather": "fine"}
    assert from_json(json.dumps(document).encode()) == report


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"comment,id\n", "not JSON"),
        (b"[]", "not a report of holdfast"),
        (b'{"schema": 3}', "not a report of holdfast"),
        (b'{"schema": "holdfast.report/2"}', r"reads holdfast\.report/1.*newer holdfast: update"),
        (b'{"schema": "holdfast.report/0"}', "older holdfast"),
        (b'{"data": ["v0.2", {}], "metadata": ["v0.2", {}]}', "Talk to the City"),
    ],
)
def test_what_is_no_report_says_so(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_json(data)


def test_a_damaged_report_says_where(report: Report) -> None:
    document = json.loads(to_json(report))
    document["topics"][0]["people"] = "many"
    with pytest.raises(InvalidInput, match=r"\$\.topics\[0\]\.people"):
        from_json(json.dumps(document).encode())


def test_the_schema_describes_every_field_of_the_document(report: Report) -> None:
    schema = json_schema()
    own = schema["$defs"]["Report"]
    assert set(own["properties"]) == {field.name for field in fields(Report)}
    assert own["properties"]["schema"]["const"] == SCHEMA
    assert set(own["required"]) == set(json.loads(to_json(report))) - {
        "warnings",
        "opinions",
        "reviewer",
        "remarks",
    }
    assert schema["$ref"] == "#/$defs/Report"


def test_an_emptied_list_stays_a_list(report: Report) -> None:
    assert json.loads(to_json(replace(report, findings=())))["findings"] == []
