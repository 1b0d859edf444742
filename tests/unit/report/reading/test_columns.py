"""Columns: found by the names files use, overridden by hand, the rest facets."""

from __future__ import annotations

import pytest

from holdfast.apps.report.reading.columns import ALIASES, find_columns
from holdfast.errors import InvalidInput


@pytest.mark.parametrize("name", ALIASES["comment"])
def test_every_known_name_of_a_comment_column_is_found(read, name):
    assert read(f"id,{name}\n1,hello there\n").texts == ["hello there"]


@pytest.mark.parametrize("name", ALIASES["speaker"])
def test_every_known_name_of_a_speaker_column_is_found(read, name):
    assert read(f"id,{name},comment\n1, Ann ,hello there\n").comments[0].speaker == "Ann"


@pytest.mark.parametrize(
    "name", ["Comment Body", "COMMENT_BODY", "comment-body", " commentBody ", "\ufeffcomment body"]
)
def test_case_spaces_hyphens_and_underscores_do_not_matter(read, name):
    comment_set = read(f"id,{name}\n1,hello there\n")
    assert comment_set.texts == ["hello there"]
    assert comment_set.reader.source.columns["comment"] == name.strip().strip("\ufeff")


@pytest.mark.parametrize("name", ["Your comment", "Ihr Kommentar", "votre_commentaire"])
def test_a_form_may_address_people(read, name):
    assert read(f"id,{name}\n1,hello there\n").texts == ["hello there"]


def test_the_first_name_in_our_list_wins_not_the_first_in_the_file():
    names = ["text", "answer", "response", "comment", "author-id", "interview", "i", "id"]
    assert find_columns(names, {}, "f").names == {
        "comment": "comment",
        "id": "id",
        "speaker": "interview",
    }


def test_an_override_wins_and_is_used_once():
    columns = find_columns(["name", "comment", "q7"], {"comment": "Q7", "speaker": "comment"}, "f")
    assert columns.names == {"comment": "q7", "speaker": "comment"}
    assert columns.facets == ((0, "name"),)
    assert find_columns(["name", "q"], {"comment": "name"}, "f").speaker is None


def test_a_polis_export_is_understood(read):
    header = "timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body"
    comment_set = read(f"{header}\n15458,Thu Dec 27,297,5102,12,3.0,0,Hello there\n")
    comment = comment_set.comments[0]
    assert (comment.id, comment.speaker, comment.anonymous) == ("297", "5102", False)
    assert (comment.agrees, comment.disagrees, comment.passes) == (12, 3, None)
    assert (comment.timestamp, comment.facets) == ("15458", {"datetime": "Thu Dec 27"})
    assert comment_set.reader.source.facets == ("datetime",)


def test_a_file_without_comments_gets_its_columns_listed(read):
    with pytest.raises(
        InvalidInput, match=r"Columns found: a, b b, column 3.*--column comment=NAME"
    ):
        read("a,b  b,\n1,2,3\n")


def test_a_file_without_a_header_is_told_so_by_its_first_row(read):
    with pytest.raises(InvalidInput, match="I like parks"):
        read("1,I like parks\n2,I do not\n")


def test_an_override_that_is_not_there_is_told(read):
    with pytest.raises(InvalidInput, match=r"no column 'q9' \(for comment\).*id, q1"):
        read("id,q1\n1,x\n", columns={"comment": "q9"})
    with pytest.raises(InvalidInput, match="no role 'colour'"):
        read("id,comment\n1,x\n", columns={"colour": "id"})


def test_the_input_without_a_name_is_called_the_input(read):
    with pytest.raises(InvalidInput, match="The input has no column"):
        read("a,b\n1,2\n", name="-")


def test_repeated_and_empty_headers_become_facets_of_their_own(read):
    comment = read("comment,comment,,age,age\nhello there,x,y,1,2\n").comments[0]
    assert comment.text == "hello there"
    assert comment.facets == {"comment (2)": "x", "column 3": "y", "age": "1", "age (2)": "2"}


def test_facets_are_thirty_at_most_and_their_values_short(read):
    header = ",".join(f"c{n}" for n in range(40))
    comment_set = read(f"comment,{header}\nhello there,{','.join('v' * 300 for _ in range(40))}\n")
    assert len(comment_set.comments[0].facets) == 30
    assert set(map(len, comment_set.comments[0].facets.values())) == {200}
    assert "left out: c30, c31, c32, c33, c34 … (10 in all)" in comment_set.warnings


def test_without_ids_rows_are_numbered_from_zero(read):
    assert [row.id for row in read("comment\nfirst one\n\nsecond one\n").rows] == ["0", "1"]


def test_ids_are_unique_whatever_the_file_says(read):
    comment_set = read("id,comment\n7,first\n7,second\n7#2,third\n7,fourth\n,fifth\nrow-5,sixth\n")
    assert [row.id for row in comment_set.rows] == ["7", "7#2", "7#2#2", "7#3", "row-5", "row-5#2"]
    assert "4 rows had an id that was used before" in comment_set.warnings
    assert "1 row had no id" in comment_set.warnings


@pytest.mark.parametrize("name", ["", "  ", "-", "?", "Anonymous", "anonym", "N/A", "匿名"])
def test_nobody_is_never_merged_with_nobody(read, name):
    comment_set = read(f"author,comment\n{name},same words\n{name},same words\n")
    assert [comment.speaker for comment in comment_set.comments] == ["Anonymous #1", "Anonymous #2"]
    assert all(comment.anonymous for comment in comment_set.comments)
    assert comment_set.reader.people == 2
    assert "1 row without a name said word for word" in comment_set.warnings


def test_a_given_name_is_never_taken_for_one_that_we_make_up(read):
    comment_set = read("author,comment\n,first words\nAnonymous #1,second words\n")
    assert [comment.speaker for comment in comment_set.comments] == [
        "Anonymous #1",
        "Anonymous #1 (given)",
    ]


def test_people_are_counted_by_name(read):
    comment_set = read("author,comment\n a@x.org,one\na@x.org ,two\nb@x.org,three\n,four\n")
    assert [comment.speaker for comment in comment_set.comments[:3]] == [
        "a@x.org",
        "a@x.org",
        "b@x.org",
    ]
    assert comment_set.reader.people == 3


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        ("12", 12),
        (" 12 ", 12),
        ("12.0", 12),
        ('"1,204"', 1204),
        ("", None),
        ("many", None),
        ("-3", None),
        ("²", None),
    ],
)
def test_votes_are_counted_however_they_are_written(read, cell, count):
    assert read(f"comment,agrees\nhello there,{cell}\n").comments[0].agrees == count


def test_a_number_of_votes_without_end_is_none(read):
    assert read(f"comment,agrees\nhello there,{'9' * 5000}\n").comments[0].agrees is None


def test_links_lose_their_spaces(read):
    comment = read("video,timestamp,comment\n https://vimeo.com/1 , 00:01 ,hello there\n").comments[
        0
    ]
    assert (comment.video, comment.timestamp) == ("https://vimeo.com/1", "00:01")
