"""A file with a column for each question: every answer is a comment, and a person stays one."""

import pytest

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading import CommentReader, ReadingOptions
from holdfast.errors import InvalidInput

FILE = """name,age,What is good?,What should change?
Ann,31,The trees,More benches
,44,The trees,
Ann,31,Yes we can,Yes we can
"""


def read(text: str, **options):
    reader = CommentReader(lambda: [text.encode()], "f.csv", ReadingOptions(**options))
    return reader, list(reader)


def test_every_answer_is_a_comment_of_its_own():
    reader, results = read(FILE)
    comments = [comment for _, comment in results if comment]
    assert [(comment.id, comment.row, comment.question, comment.text) for comment in comments] == [
        ("0-q1", 1, "What is good?", "The trees"),
        ("0-q2", 1, "What should change?", "More benches"),
        ("1-q1", 2, "What is good?", "The trees"),
        ("2-q1", 3, "What is good?", "Yes we can"),
        ("2-q2", 3, "What should change?", "Yes we can"),
    ]
    assert comments[0].facets == {"age": "31"}
    assert reader.people == 2
    assert reader.fates == {"kept": 5, "empty": 1}
    assert [row.id for row, _ in results if row.fate is Fate.EMPTY] == ["1-q2"]


def test_columns_can_be_named():
    text = "id,likes,wishes\n7,Trees,Benches\n"
    _, results = read(text, questions=("wishes", "likes"))
    assert [(comment.id, comment.question) for _, comment in results if comment] == [
        ("7-q1", "wishes"),
        ("7-q2", "likes"),
    ]
    with pytest.raises(InvalidInput, match="no column 'dislikes'"):
        read(text, questions=("dislikes",))


def test_one_question_is_a_column_of_comments_like_any_other():
    _, results = read("name,What should change?\nAnn,More benches\n")
    assert [(comment.id, comment.question) for _, comment in results if comment] == [("0", "")]


def test_a_column_called_comment_comes_before_questions():
    _, results = read("comment,Are you over 18?\nMore benches,yes\n")
    assert [(comment.text, comment.facets) for _, comment in results if comment] == [
        ("More benches", {"Are you over 18?": "yes"})
    ]


def test_a_limit_counts_answers():
    rows = "".join(f"Thing {at} is good,Thing {at} must go\n" for at in range(20))
    reader, results = read(f"What is good?,What is bad?\n{rows}", max_comments=7)
    assert sum(comment is not None for _, comment in results) == 7
    assert reader.fates == {"kept": 7, "over the limit": 33}
