"""CSV and its relatives, as they are found: separators, quotes, line ends, ragged rows."""

from __future__ import annotations

import pytest

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading import CommentReader, ReadingOptions, check_not_empty
from holdfast.apps.report.reading.dialect import ONE_COLUMN, dialect_of
from holdfast.apps.report.reading.quote_repair import MAX_UNREPAIRED
from holdfast.errors import InvalidInput


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_recognised(read, separator, end):
    lines = [
        ["id", "author", "comment"],
        ["1", "ann", "First of all"],
        ["2", "bob", '"Second; or, rather | last"'],
    ]
    comment_set = read(end.join(separator.join(cells) for cells in lines) + end)
    assert comment_set.texts == ["First of all", "Second; or, rather | last"]
    assert comment_set.reader.source.separator == separator


def test_a_single_column_keeps_its_commas(read):
    comment_set = read("comment\nCats, dogs, and birds\nFish; or nothing\n")
    assert comment_set.texts == ["Cats, dogs, and birds", "Fish; or nothing"]
    assert comment_set.reader.source.separator == ""


def test_commas_in_comments_do_not_outvote_the_separator(read):
    comment_set = read(
        "author;comment\nann;one, two, three\nbob;four, five\ncid;six, seven, eight, nine\n"
    )
    assert comment_set.texts == ["one, two, three", "four, five", "six, seven, eight, nine"]


def test_a_separator_that_the_file_names_itself_is_used(read):
    assert read("sep=;\nid;comment\n1;hello there\n").texts == ["hello there"]


def test_a_header_without_a_known_name_is_judged_by_how_even_the_rows_are():
    def unknown(header):
        return False

    assert dialect_of("a;b;c\n1;2;3\n4,5;6;7\n", unknown).separator == ";"
    assert (
        dialect_of("What do you think, and why?\nnothing\nparks\ntrees\n", unknown).separator
        == ONE_COLUMN
    )


def test_cells_may_hold_line_ends_as_they_are(read):
    comment_set = read('id,comment\n1,"one\ntwo\r\nthree\rfour"\n2,next\n')
    assert comment_set.texts == ["one\ntwo\r\nthree\rfour", "next"]


def test_doubled_quotes_are_quotes(read):
    assert read('id,comment\n1,"She said ""yes"", twice"\n').texts == ['She said "yes", twice']


def test_spaces_before_quotes_are_no_part_of_a_cell(read):
    comment_set = read('id, author, comment\n1, ann, "one, two"\n2, bob, "three"\n')
    assert comment_set.texts == ["one, two", "three"]
    assert [comment.speaker for comment in comment_set.comments] == ["ann", "bob"]


def test_a_quote_inside_an_unquoted_cell_is_a_quote(read):
    assert read('id,comment\n1,a 5" pipe and a 3" pipe\n2,next\n').texts == [
        'a 5" pipe and a 3" pipe',
        "next",
    ]


def test_quotes_that_are_not_doubled_are_understood(read):
    comment_set = read('id,comment,age\n1,"He said "hi" to me",30\n2,"fine",40\n')
    assert comment_set.texts == ['He said "hi" to me', "fine"]
    assert "1 row had quotes that were not closed or not doubled" in comment_set.warnings


def test_quotes_that_are_not_doubled_are_understood_over_several_lines(read):
    comment_set = read('id,comment,age\n1,"He said "hi" to me\nand left",30\n2,"fine",40\n')
    assert comment_set.texts == ['He said "hi" to me\nand left', "fine"]


def test_a_quote_that_is_never_closed_swallows_nothing(read):
    rows = "".join(f"{n},p{n},words of row {n}\n" for n in range(4, 3000))
    comment_set = read(
        f'id,author,comment\n1,ann,fine\n2,bob,"never closed\n3,cid,next one\n{rows}'
    )
    assert len(comment_set.rows) == 2999
    assert comment_set.texts[:3] == ["fine", '"never closed', "next one"]
    assert "quotes that were not closed" in comment_set.warnings


def test_a_quote_that_is_closed_by_a_later_row_swallows_nothing(read):
    comment_set = read(
        'id,author,comment\n1,ann,"never closed\n2,bob,middle\n3,cid,"well, closed"\n4,dan,last\n'
    )
    assert comment_set.texts == ['"never closed', "middle", "well, closed", "last"]


def test_a_row_that_fits_no_reading_is_broken_and_shown(read):
    comment_set = read(
        'id,author,comment,age\n1,"x,fine\n2,bob,good words,30\n3,cid,more words,40\n'
    )
    assert comment_set.fates == [Fate.BROKEN, Fate.KEPT, Fate.KEPT]
    assert "quote" in comment_set.rows[0].reason
    assert comment_set.rows[0].text == '1,"x,fine'


def test_hundreds_of_bad_quotes_are_read_in_passing(read):
    rows = "".join(f'{n},"row {n}" and more\n' for n in range(5 * MAX_UNREPAIRED))
    comment_set = read("id,comment\n" + rows)
    assert len(comment_set.rows) == 5 * MAX_UNREPAIRED
    assert comment_set.texts[-1] == f'"row {5 * MAX_UNREPAIRED - 1}" and more'


def test_a_cell_longer_than_the_csv_module_reads_is_too_long_and_no_more(read):
    first, quoted, lines = "a" * 200_000, "b c " * 50_000, "a line\n" * 40_000
    comment_set = read(f'id,comment\n1,{first}\n2,"{quoted}"\n3,"{lines}"\n4,fine\n')
    assert comment_set.fates == [Fate.TOO_LONG] * 3 + [Fate.KEPT]
    assert "200,000 characters" in comment_set.rows[0].reason
    assert len(comment_set.rows[0].text) == 120


def test_a_line_without_end_is_cut(read):
    comment_set = read(f"id,comment\n1,{'x' * 9_000_000}\n2,fine\n")
    assert comment_set.fates == [Fate.TOO_LONG, Fate.KEPT]
    assert "which was cut" in comment_set.warnings


def test_blank_lines_are_no_rows(read):
    comment_set = read("\n\nid,comment\n\n1,one\n\r\n\n2,two\n\n")
    assert comment_set.texts == ["one", "two"]
    assert len(comment_set.rows) == 2


def test_a_row_of_empty_cells_is_empty(read):
    assert read("id,comment,age\n,,\n1,words here,3\n").fates == [Fate.EMPTY, Fate.KEPT]


def test_short_rows_are_kept_if_they_have_a_comment(read):
    comment_set = read("id,comment,age\n1,words here\n2\n")
    assert comment_set.fates == [Fate.KEPT, Fate.BROKEN]
    assert "1 of 3 cells" in comment_set.rows[1].reason
    assert "1 row had fewer cells than the header" in comment_set.warnings


def test_a_comment_cut_at_its_commas_is_put_together_in_the_last_column(read):
    comment_set = read(
        "id,author,comment\n1,ann,cats, dogs, and birds\n2,bob,fish\n3,cid,trailing,,\n"
    )
    assert comment_set.texts == ["cats, dogs, and birds", "fish", "trailing"]
    assert "1 row had more cells than the header" in comment_set.warnings


def test_surplus_cells_elsewhere_are_left_out_and_told(read):
    comment_set = read("id,comment,age\n1,cats,3\n2,dogs,and birds,4\n")
    assert comment_set.texts == ["cats", "dogs"]
    assert "surplus cells were left out" in comment_set.warnings


@pytest.mark.parametrize(
    "cell", ["=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)", "<script>alert(1)</script>", "=1+1"]
)
def test_formulas_and_scripts_are_data(read, cell):
    assert read(f"id,comment\n1,{cell} is what I say\n").texts == [f"{cell} is what I say"]


def test_direction_marks_and_joiners_stay(read):
    text = "\u202eabc\u202c 👩‍👩‍👧 \u200bword"
    assert read(f"id,comment\n1,{text}\n").texts == [text]


def test_an_empty_file_is_refused():
    for data in ([], [b""], [b"\n\n"], [b"\xef\xbb\xbf"]):
        with pytest.raises(InvalidInput, match=r"x\.csv is empty"):
            list(CommentReader(lambda data=data: data, "x.csv", ReadingOptions(columns={})))


def test_a_hundred_thousand_columns_are_refused(read):
    with pytest.raises(InvalidInput, match="100,001 columns"):
        read("comment," + ",".join(f"c{n}" for n in range(100_000)) + "\nhello\n")


def test_a_header_alone_is_a_file_without_rows(read):
    assert read("id,comment\n").rows == []


def test_reading_again_gives_the_same(read):
    comment_set = read("id,author,comment\n1,ann,same\n1,ann,same\n2,,other\n")
    again = list(comment_set.reader)
    assert [row for row, _ in again] == comment_set.rows
    assert [comment for _, comment in again if comment] == comment_set.comments
    assert sum(comment_set.reader.fates.values()) == 3


def test_a_half_read_file_is_closed():
    closed = []

    def opened():
        try:
            yield from [b"id,comment\n1,one word\n2,two words\n", b"3,three words\n"] * 10_000
        finally:
            closed.append(True)

    rows = iter(CommentReader(opened, "x.csv", ReadingOptions(columns={}, max_comments=10**6)))
    next(rows)
    before = len(closed)
    rows.close()
    assert len(closed) == before + 1


def test_a_quoted_cell_of_a_megabyte_draws_no_warning(read):
    long = 'word ""quoted"", and more text\n' * 40_000
    comment_set = read(f'id,comment\n1,"{long}"\n2,More trees\n')
    assert comment_set.fates == [Fate.TOO_LONG, Fate.KEPT]
    assert comment_set.warnings == ""


def test_a_binary_file_is_called_one(read):
    with pytest.raises(InvalidInput, match=r"x\.csv is a binary file"):
        read(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "x.csv")


@pytest.mark.parametrize(
    ("data", "reason"),
    [("id,comment\n", "no rows"), ("id,comment\n1,👍\n2,\n", r"2 rows .* \(1 empty, 1 junk\)")],
)
def test_a_file_without_a_comment_says_what_became_of_its_rows(read, data, reason):
    with pytest.raises(InvalidInput, match=reason):
        check_not_empty(read(data).reader, "x.csv")
