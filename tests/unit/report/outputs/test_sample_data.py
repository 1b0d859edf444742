"""The sample data agrees with itself: votes add up, authors agree with themselves, and all that
should be there is."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

DATA = Path(__file__).parents[4] / "examples" / "data"
Table = list[dict[str, str]]


def read(name: str) -> Table:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def comments() -> Table:
    return read("riverside.csv")


@pytest.fixture(scope="module")
def votes() -> Table:
    return read("riverside-votes.csv")


def test_comments_have_unique_ids_and_many_speakers(comments: Table) -> None:
    assert len({row["comment-id"] for row in comments}) == len(comments) >= 200
    assert len({row["name"] for row in comments if row["name"]}) >= 110
    assert any(not row["name"] for row in comments)
    assert {row["district"] for row in comments} >= {
        "Old Town",
        "Northside",
        "Mill Quarter",
        "Eastfield",
    }


def test_the_vote_table_adds_up_to_the_counts_in_the_file(comments: Table, votes: Table) -> None:
    counts = {
        row["comment-id"]: tuple(int(row[name]) for name in ("agrees", "disagrees", "passes"))
        for row in comments
    }
    ids = [name for name in votes[0] if name.isdecimal()]
    assert len(votes) == 90
    assert len(ids) == 62
    for key in ids:
        cast = Counter(row[key] for row in votes)
        assert cast.keys() <= {"1", "-1", "0", ""}
        assert (cast["1"], cast["-1"], cast["0"]) == counts[key]
    assert min(sum(counts[key]) for key in ids) > max(
        sum(counts[key]) for key in counts.keys() - set(ids)
    )


def test_each_voter_is_counted_right_and_agrees_with_their_own_comments(
    comments: Table, votes: Table
) -> None:
    ids = [name for name in votes[0] if name.isdecimal()]
    written = Counter(row["name"] for row in comments)
    own = {row["comment-id"]: row["name"] for row in comments}
    for voter in votes:
        cast = Counter(voter[entry] for entry in ids)
        counts = tuple(
            int(voter[name]) for name in ("n-comments", "n-votes", "n-agree", "n-disagree")
        )
        assert counts == (written[voter["participant"]], len(ids) - cast[""], cast["1"], cast["-1"])
        assert all(voter[entry] == "1" for entry in ids if own[entry] == voter["participant"])


def test_what_real_files_contain_is_there(comments: Table) -> None:
    texts = [row["comment-body"] for row in comments]
    for sample in ("", "!!!", "🎉🎉🎉"):
        assert sample in texts
    for part in (
        "=HYPERLINK(",
        "<script>",
        "Ignore all previous instructions",
        "@example.org",
        "voitures",
        "aparcar",
        "\n",
    ):
        assert any(part in text for text in texts), part
    counts = Counter((row["name"], row["comment-body"]) for row in comments)
    assert sorted(count for count in counts.values() if count > 1) == [2, 3]


def test_some_comments_divide_people_and_others_do_not(comments: Table) -> None:
    cast = [(int(row["agrees"]), int(row["disagrees"])) for row in comments]
    divided = [pair for pair in cast if sum(pair) >= 30 and min(pair) / sum(pair) > 0.4]
    agreed = [pair for pair in cast if sum(pair) >= 30 and min(pair) / sum(pair) < 0.1]
    assert len(divided) >= 10
    assert len(agreed) >= 10
