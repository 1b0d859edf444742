"""Run ids and tokens."""

import re

from holdfast.model.ids import new_id, new_ids, new_token


def test_an_id_has_26_plain_characters():
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{26}", new_id(1_700_000_000.0))


def test_ids_are_ordered_by_the_time_they_were_made():
    ids = [new_id(1_700_000_000.0 + n / 1000) for n in range(500)]
    assert sorted(ids) == ids


def test_ids_of_one_moment_differ():
    assert len({new_id(1_700_000_000.0) for _ in range(1000)}) == 1000


def test_tokens_are_never_the_same():
    assert len({new_token() for _ in range(1000)}) == 1000


def test_many_made_at_once_are_as_good_as_one_at_a_time():
    ids = new_ids(1_700_000_000.0, 1000)
    assert len(set(ids)) == 1000
    assert {id[:10] for id in ids} == {new_id(1_700_000_000.0)[:10]}
    assert all(re.fullmatch(r"[0-9a-hjkmnp-tv-z]{26}", id) for id in ids)
    assert new_ids(1_700_000_000.0, 0) == []
