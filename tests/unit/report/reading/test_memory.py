"""Files of any length: what is held does not grow with them, but for a few bytes for each row."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from holdfast.apps.report.reading import CommentReader, ReadingOptions
from holdfast.apps.report.reading.hash_set import HashSet


def rows(count: int) -> Iterator[bytes]:
    yield b"id,author,comment,district\n"
    for start in range(0, count, 1000):
        lines = (
            f"{n},person {n},words about matter {n} and {n * 7},north\n"
            for n in range(start, start + 1000)
        )
        yield "".join(lines).encode()


def held(count: int, most: int) -> list[int]:
    """Blocks of memory in use, after every thousandth row."""
    reader = CommentReader(
        lambda: rows(count), "x.csv", ReadingOptions(columns={}, max_comments=most)
    )
    return [sys.getallocatedblocks() for row, _ in reader if row.row % 1000 == 0]


@pytest.mark.parametrize("most", [10**6, 500])
def test_what_is_held_does_not_grow_with_the_file(most):
    blocks = held(30_000, most)
    assert len(blocks) == 30
    assert blocks[-1] - blocks[4] < 1000, "25,000 rows later"


def test_what_was_seen_takes_a_few_bytes():
    hashes = HashSet()
    for number in range(100_000):
        hashes.add(hash(str(number)))
    assert hashes.count == 100_000
    assert sys.getsizeof(hashes._table) < 25 * 100_000


def test_what_was_seen_is_known_whatever_the_number():
    hashes = HashSet()
    numbers = [0, 1, -5, 2**70, *range(10_000)]
    assert [hashes.add(number) for number in numbers][:4] == [True, False, True, False]
    assert not any(hashes.add(number) for number in numbers)
    assert hashes.count == 10_000
