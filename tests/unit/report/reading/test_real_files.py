"""Real files that are hard to read. They are no part of the project: without them these tests say
so and skip."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from holdfast.apps.report.reading import read_votes

DATA = Path(__file__).parents[4] / ".." / "shared" / "data"

FILES = {
    "polis_seattle15_54": (54, "en", {"kept": 31, "moderated out": 23}, 19),
    "polis_vtaiwan_uberx_zh_197": (197, "zh", {"kept": 119, "moderated out": 78}, 55),
    "polis_football_messy_298": (298, "en", {"kept": 161, "empty": 1, "moderated out": 136}, 69),
    "polis_marchon_2162": (2162, "en", {"kept": 1765, "junk": 2, "moderated out": 395}, 1058),
    "t3c_hard_cases_messy_22": (22, "en", {"kept": 16, "empty": 2, "junk": 4}, 16),
    "t3c_interviews_video_128": (128, "en", {"kept": 128}, 12),
    "t3c_very_duplicates_8": (8, "en", {"kept": 8}, 8),
}


def content(name: str) -> bytes:
    path = DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"the real files are not here: {path.resolve()}")
    return path.read_bytes()


@pytest.mark.parametrize(("name", "expected"), FILES.items(), ids=FILES)
def test_a_real_file_is_accounted_for(read, name, expected):
    rows, language, fates, people = expected
    comment_set = read(content(name), f"{name}.csv", chunk=1000)
    assert len(comment_set.rows) == rows
    assert comment_set.reader.fates == fates
    assert (comment_set.reader.language, comment_set.reader.people) == (language, people)
    assert not comment_set.warnings


@pytest.mark.parametrize("name", FILES)
def test_texts_ids_and_speakers_of_a_real_file_are_as_given(read, name):
    data = content(name)
    comment_set = read(data, f"{name}.csv", keep_moderated=True)
    rows_in_file = list(csv.DictReader(data.decode().splitlines(keepends=True)))
    columns = comment_set.reader.source.columns
    for comment in comment_set.comments:
        row = rows_in_file[comment.row - 1]
        assert comment.text == row[columns["comment"]]
        assert comment.id == row[columns["id"]]
        assert comment.anonymous or comment.speaker == row[columns["speaker"]].strip()
        assert comment.anonymous == (not row[columns["speaker"]].strip())


def test_interviews_keep_their_links(read):
    comment_set = read(content("t3c_interviews_video_128"))
    assert all(comment.video.startswith("https://") for comment in comment_set.comments)
    assert comment_set.comments[1].timestamp == "00:01:38"


def test_numbers_in_a_messy_file_are_masked_and_only_there(read):
    data = content("polis_football_messy_298")
    plain, masked = read(data), read(data, mask=True)
    changed = [
        b.text for a, b in zip(plain.comments, masked.comments, strict=True) if a.text != b.text
    ]
    assert len(changed) == 4
    assert all("[phone]" in text for text in changed)
    assert [(c.id, c.speaker, len(c.text)) for c in plain.comments] == [
        (c.id, c.speaker, len(c.text)) for c in masked.comments
    ]


@pytest.mark.parametrize(
    ("name", "comments", "shape"),
    [
        ("seattle15_participants_votes", "polis_seattle15_54", (339, 54)),
        ("vtaiwan_uberx_participants_votes", "polis_vtaiwan_uberx_zh_197", (1921, 197)),
    ],
)
def test_real_votes_agree_with_the_counts_beside_them(read, name, comments, shape):
    ids = {row.id for row in read(content(comments)).rows}
    data = content(f"votes/{name}")
    votes = read_votes([data], f"{name}.csv", ids)
    assert (len(votes.participants), len(votes.comments)) == shape
    rows_in_file = list(csv.DictReader(data.decode().splitlines()))
    agreed = Counter(person for person, _, vote in votes.cells if vote == 1)
    assert [agreed[number] for number in range(len(rows_in_file))] == [
        sum(row[comment] in ("1", "1.0") for comment in votes.comments) for row in rows_in_file
    ]
