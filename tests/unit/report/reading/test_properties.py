"""Whatever the bytes: every row is accounted for, and what was written is what is read."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.report.model.comment import Fate
from holdfast.errors import InvalidInput

HEADERS = [
    b"comment\n",
    b"id,comment\n",
    b"id;author;comment;x\n",
    b'"comment"\t"x"\n',
    b'[{"comment": "',
    b"PK\x03\x04",
]
NAMES = ["x.csv", "x.tsv", "x.json", "x.jsonl", "x.xlsx", "-", "x"]

COMMON = 'a|"|""|,|;|\n|\r|\t|\0|ü|好| |1|{|}|[|]|:|"comment"|words|\\u|\\ud800'
snippets = st.sampled_from([b"\xff", b"\xfe", b"|", *COMMON.encode().split(b"|")])
messy = st.one_of(st.binary(max_size=200), st.lists(snippets, max_size=80).map(b"".join))


@settings(max_examples=300, deadline=None)
@given(
    header=st.sampled_from([*HEADERS, b""]),
    body=messy,
    name=st.sampled_from(NAMES),
    chunk=st.integers(1, 50),
)
def test_arbitrary_bytes_are_read_or_refused(read, header, body, name, chunk):
    try:
        comment_set = read(
            header + body, name, chunk=chunk, mask=True, max_comments=3, max_characters=60
        )
    except InvalidInput:
        return
    assert len(comment_set.comments) <= 3
    assert len({row.id for row in comment_set.rows}) == len(comment_set.rows)
    json.dumps(
        [row.text for row in comment_set.rows] + comment_set.texts, ensure_ascii=False
    ).encode()


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), min_size=1, max_size=40
)
table = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(
    rows=table,
    separator=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"]),
    first=st.booleans(),
)
def test_what_was_written_is_what_is_read(read, rows, separator, quoting, codec, first):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, quoting=quoting)
    writer.writerow(["comment", "note"] if first else ["note", "comment"])
    for comment, note in rows:
        # Words around it, so that no row is left out and no line looks blank.
        cells = [f"say {comment} now", f"n{note}"]
        writer.writerow(cells if first else cells[::-1])
    comment_set = read(file.getvalue().encode(codec), max_characters=1000)
    assert comment_set.texts == [f"say {comment} now" for comment, _ in rows]


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(texts, min_size=1, max_size=8), ascii_only=st.booleans(), lines=st.booleans())
def test_what_was_written_as_json_is_what_is_read(read, rows, ascii_only, lines):
    objects = [{"comment": f"say {text} now", "n": number} for number, text in enumerate(rows)]
    if lines:
        comment_set = read(
            "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in objects), "x.jsonl"
        )
    else:
        comment_set = read(json.dumps(objects, ensure_ascii=ascii_only), "x.json")
    assert comment_set.texts == [row["comment"] for row in objects]


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.text('ab," \n', max_size=12), max_size=12))
def test_quotes_gone_wrong_lose_no_words(read, lines):
    """However quotes stand, words after them are somewhere in a row: kept, or shown as broken."""
    data = "id,comment\n" + "\n".join(lines) + "\n9,last words\n"
    comment_set = read(data)
    text = "".join(comment_set.texts) + "".join(row.text for row in comment_set.rows)
    assert "last words" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_prefix_of_a_small_file_is_read_or_refused(read, name):
    data = 'id,author,comment\r\n1,ann,"a ""quoted"" word\r\nand more"\r\n2,bö,x'.encode()
    for end in range(len(data)):
        try:
            comment_set = read(data[:end], name)
        except InvalidInput:
            continue
        assert all(isinstance(row.fate, Fate) for row in comment_set.rows)
