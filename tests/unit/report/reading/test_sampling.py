"""More comments than one report takes: drawn by content, whatever their order."""

from __future__ import annotations

import random

import pytest

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading.sampling import largest_kept

ROWS = [f"p{n % 90},comment number {n}" for n in range(300)]


def table(rows: list[str]) -> str:
    return "author,comment\n" + "\n".join(rows) + "\n"


def test_exactly_as_many_are_kept_as_asked_for(read):
    comment_set = read(table(ROWS), max_comments=100)
    assert comment_set.reader.fates == {"kept": 100, "over the limit": 200}
    assert all(
        "more than 100 comments" in row.reason
        for row in comment_set.rows
        if row.fate is Fate.OVER_LIMIT
    )


def test_the_order_of_the_file_does_not_matter(read):
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    assert set(read(table(ROWS), max_comments=50).texts) == set(
        read(table(shuffled), max_comments=50).texts
    )


def test_a_smaller_sample_is_part_of_a_larger_one(read):
    few, many = (set(read(table(ROWS), max_comments=most).texts) for most in (40, 80))
    assert few < many


def test_the_same_words_of_unnamed_people_are_drawn_one_by_one(read):
    comment_set = read("comment\n" + "yes please\n" * 200 + "no thanks\n" * 200, max_comments=200)
    assert len(comment_set.texts) == 200
    assert 60 < comment_set.texts.count("yes please") < 140


def test_rows_that_are_left_out_anyway_do_not_count(read):
    comment_set = read("comment\n" + "one\ntwo\n" + "!\n" * 50, max_comments=2)
    assert comment_set.reader.fates == {"kept": 2, "junk": 50}


@pytest.mark.parametrize("most", [0, 1, 5, 99, 100, 101])
def test_the_largest_weight_that_is_kept(most):
    weights = random.Random(1).sample(range(1000), 100)
    largest = largest_kept(iter(weights), most)
    accepted = weights if largest is None else [weight for weight in weights if weight <= largest]
    assert sorted(accepted) == sorted(weights)[:most]
