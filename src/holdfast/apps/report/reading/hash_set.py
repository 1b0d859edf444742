"""What was seen before, at 8 bytes a slot: a file of a million rows has up to a million ids, people
and texts."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_START = 1 << 10
_MASK = (1 << 60) - 1  # fits into two digits of a Python integer, and leaves zero for "free"


class HashSet:
    """A set of 60-bit numbers in an open-addressed table, a quarter of the size of Python's own."""

    __slots__ = ("_limit", "_mask", "_table", "count")

    def __init__(self) -> None:
        self.count = 0
        self._resize(_START)

    def add(self, number: int) -> bool:
        """Whether it is new."""
        number = number & _MASK or 1
        table, mask = self._table, self._mask
        at = number & mask
        while stored := table[at]:
            if stored == number:
                return False
            at = (at + 1) & mask
        table[at] = number
        self.count += 1
        if self.count > self._limit:
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._table
        self._resize(2 * len(old))
        table, mask = self._table, self._mask
        for number in old:
            if number:
                at = number & mask
                while table[at]:
                    at = (at + 1) & mask
                table[at] = number

    def _resize(self, size: int) -> None:
        self._table = array("Q", bytes(8 * size))
        self._mask = size - 1
        self._limit = size * 7 // 10


def content_hash(*parts: str) -> int:
    """60 bits of the content, the same in every process."""
    digest = blake2b("\x1f".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & _MASK
