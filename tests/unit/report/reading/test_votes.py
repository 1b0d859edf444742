"""The vote matrix of a Polis export."""

from __future__ import annotations

import pytest

from holdfast.apps.report.reading import check_counts, read_votes, votes
from holdfast.errors import InvalidInput

MATRIX = b"""participant,group-id,n-votes,0,1,7
10,0,3,1,-1,0
11,,1,,1.0,
10,1,2,x,-1, 1
,1,0,,,
"""


def test_votes_are_read_where_somebody_voted():
    votes = read_votes([MATRIX[:40], MATRIX[40:]], "votes.csv", {"0", "1", "7"})
    assert votes.participants == ("10", "11", "10#2", "row 4")
    assert votes.comments == ("0", "1", "7")
    assert votes.cells == ((0, 0, 1), (0, 1, -1), (0, 2, 0), (1, 1, 1), (2, 1, -1), (2, 2, 1))


def test_columns_of_other_comments_are_passed_over():
    votes = read_votes([MATRIX], "votes.csv", {"7"})
    assert (votes.comments, votes.cells) == (("7",), ((0, 0, 0), (2, 0, 1)))


def test_the_participants_may_stand_anywhere():
    votes = read_votes([b"5,Voter ID\n1,ann\n-1,bob\n"], "votes.csv", {"5"})
    assert (votes.participants, votes.cells) == (("ann", "bob"), ((0, 0, 1), (1, 0, -1)))


def test_thousands_of_comments_are_no_problem():
    ids = [str(number) for number in range(20_000)]
    data = ("participant," + ",".join(ids) + "\nann" + ",1" * 20_000 + "\n").encode()
    assert len(read_votes([data], "votes.csv", set(ids)).cells) == 20_000


def test_a_file_without_votes_is_refused():
    with pytest.raises(
        InvalidInput, match="Columns found: participant, group-id, n-votes, 0, 1, 7"
    ):
        read_votes([MATRIX], "votes.csv", {"99"})
    with pytest.raises(InvalidInput, match=r"votes\.csv is empty"):
        read_votes([], "votes.csv", {"1"})


def test_a_matrix_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(votes, "LARGEST_MATRIX", 50)
    with pytest.raises(InvalidInput, match="votes are read up to"):
        read_votes([MATRIX], "votes.csv", {"1"})


def test_a_matrix_of_another_conversation_says_what_was_compared():
    with pytest.raises(InvalidInput, match="votes on 3 comments, and 2 of their ids are not in"):
        read_votes([MATRIX], "votes.csv", {"7"}, {"7", "a", "b"})
    votes = read_votes([MATRIX], "votes.csv", {"0", "1", "7"})
    check_counts(votes, {"0": (1, 0), "1": (1, 2)}, "votes.csv")
    with pytest.raises(InvalidInput, match=r"Comment 0 has 90 and 40 .* and 1 and 0 in the matrix"):
        check_counts(votes, {"0": (90, 40), "1": (55, 3)}, "votes.csv")
