"""Run ids and tokens."""

import re

from holdfast.model.ids import new_id, new_token


def test_an_id_has_26_plain_characters():
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{26}", new_id(1_700_000_000.0))


def test_ids_are_ordered_by_the_time_they_were_made():
    ids = [new_id(1_700_000_000.0 + n / 1000) for n in range(500)]
    assert sorted(ids) == ids


def test_ids_of_one_moment_differ():
    assert len({new_id(1_700_000_000.0) for _ in range(1000)}) == 1000


def test_tokens_are_never_the_same():
    assert len({new_token() for _ in range(1000)}) == 1000
