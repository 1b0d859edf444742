"""JSON: one document or one on every line, in the shapes that programs write."""

from __future__ import annotations

import json

import pytest

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading import json_tables
from holdfast.errors import InvalidInput

ROWS = [
    {"id": 1, "author": "ann", "comment": "First words", "age": 30, "x": {"deep": [1]}},
    {"id": 2.0, "author": None, "comment": "Second\nwords", "age": 4.5, "member": True},
]


@pytest.mark.parametrize(
    "document",
    [
        ROWS,
        {"data": ROWS},
        {"comments": ROWS},
        {"data": ["csv", ROWS]},
        {"config": {}, "data": ROWS},
    ],
    ids=["list", "data", "comments", "tagged", "job"],
)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["x.json", "-", "x.txt"])
def test_rows_are_found_in_a_document(read, document, indent, name):
    comment_set = read(json.dumps(document, indent=indent), name)
    assert comment_set.texts == ["First words", "Second\nwords"]
    assert [comment.id for comment in comment_set.comments] == ["1", "2"]
    assert comment_set.comments[0].facets == {"age": "30", "x.deep": "[1]"}
    assert comment_set.comments[1].facets == {"age": "4.5", "member": "true"}
    assert comment_set.comments[1].anonymous
    assert comment_set.reader.source.format == "json"


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "-", "x.json"])
def test_rows_are_found_on_lines(read, name):
    comment_set = read("\n".join(map(json.dumps, ROWS)) + "\n\n", name)
    assert comment_set.texts == ["First words", "Second\nwords"]
    assert comment_set.reader.source.format == "jsonl"


def test_a_single_line_is_a_row(read):
    assert read('{"comment": "All alone"}\n', "x.jsonl").texts == ["All alone"]
    assert read('{"comment": "All alone"}', "-").texts == ["All alone"]


def test_strings_are_comments(read):
    assert read('["First words", "Second words"]', "x.json").texts == [
        "First words",
        "Second words",
    ]
    assert read('"First words"\n"Second words"\n', "x.jsonl").texts == [
        "First words",
        "Second words",
    ]


def test_a_bad_line_is_a_broken_row(read):
    comment_set = read(
        '{"comment": "one word"}\n{"comment": "two\n[1]\n{"comment": "three words"}\n', "x.jsonl"
    )
    assert comment_set.fates == [Fate.KEPT, Fate.BROKEN, Fate.BROKEN, Fate.KEPT]
    assert "not valid JSON" in comment_set.rows[1].reason
    assert comment_set.rows[1].text == '{"comment": "two'


def test_values_that_are_no_rows_are_broken(read):
    assert (
        read('[{"comment": "one word"}, 7, null, []]', "x.json").fates
        == [Fate.KEPT] + [Fate.BROKEN] * 3
    )


def test_halves_of_characters_are_replaced(read):
    comment_set = read(
        '[{"comment": "half \\ud83d, whole \\ud83d\\ude00, zero \\u0000", "\\udc00": "x"}]',
        "x.json",
    )
    assert comment_set.texts == ["half �, whole 😀, zero �"]
    assert comment_set.comments[0].facets == {"�": "x"}


def test_keys_that_come_late_are_told(read):
    lines = ['{"comment": "some words"}'] * 1000 + ['{"comment": "more words", "late": 1}']
    comment_set = read("\n".join(lines), "x.jsonl")
    assert len(comment_set.comments) == 1001
    assert "1 row had keys that none of the first 1,000 rows has" in comment_set.warnings


@pytest.mark.parametrize(
    "text", ["{", "[1,", '{"a": }', "[" * 100_000, "7", "null", '"x"', "9" * 5000, "[]", "{}"]
)
def test_a_document_that_is_none_is_refused(read, text):
    with pytest.raises(InvalidInput, match=r"x\.json"):
        read(text, "x.json")


def test_lines_nested_too_deeply_are_broken(read):
    assert read('{"comment": "words"}\n' + "[" * 100_000 + "\n", "x.jsonl").fates == [
        Fate.KEPT,
        Fate.BROKEN,
    ]


def test_a_document_that_is_too_large_names_the_way_out(read, monkeypatch):
    monkeypatch.setattr(json_tables, "LARGEST_DOCUMENT", 1000)
    with pytest.raises(InvalidInput, match="jsonl"):
        read(json.dumps(ROWS * 20), "x.json")


def test_a_document_without_comments_gets_its_keys_listed(read):
    with pytest.raises(InvalidInput, match="Columns found: a, b"):
        read('[{"a": 1}, {"b": 2}]', "x.json")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_documents_are_read_in_other_encodings(read, codec):
    assert read('[{"comment": "schöne Worte"}]'.encode(codec), "x.json").texts == ["schöne Worte"]


def test_objects_inside_rows_and_documents_are_looked_into(read):
    document = {
        "data": {
            "comments": [
                {"comment": {"text": "More trees by the river"}, "author": {"name": "Ann"}},
                {"comment": {"text": "No cars in the centre"}, "author": {"name": "Bob"}},
            ]
        }
    }
    comment_set = read(json.dumps(document).encode(), "x.json")
    assert [(comment.text, comment.speaker) for comment in comment_set.comments] == [
        ("More trees by the river", "Ann"),
        ("No cars in the centre", "Bob"),
    ]


def test_a_list_of_objects_is_found_under_any_name_and_depth(read):
    text = json.dumps(
        {"a": {"b": {"entries": [{"x": {"y": "More trees"}}, {"x": {"y": "Buses"}}]}}}
    )
    assert read(text, "f.json", columns={"comment": "x.y"}).texts == ["More trees", "Buses"]


def test_an_object_with_a_text_is_a_row_whatever_lists_it_has(read):
    text = json.dumps({"comment": "More trees please", "tags": [{"a": 1}]})
    assert read(text, "f.json").texts == ["More trees please"]
