"""Run ids: 128 bits as 26 lower-case characters, ordered by the time they were made."""

from __future__ import annotations

import os
from functools import lru_cache

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_LETTER_OF_BYTE = (
    _ALPHABET * 8
).encode()  # each letter for eight of the 256 bytes: all are as likely


def new_id(now: float) -> str:
    """A fresh id for something made at `now` (seconds since the epoch): 48 bits of time, 80 of
    chance."""
    return _time(int(now * 1000)) + os.urandom(16).translate(_LETTER_OF_BYTE).decode()


def new_ids(now: float, count: int) -> list[str]:
    """As many at once: the kernel is asked for all the chance that they need."""
    time, chance = (
        _time(int(now * 1000)),
        os.urandom(16 * count).translate(_LETTER_OF_BYTE).decode(),
    )
    return [time + chance[at : at + 16] for at in range(0, 16 * count, 16)]


@lru_cache(maxsize=4)  # many are made in one millisecond
def _time(milliseconds: int) -> str:
    return "".join([_PAIRS[milliseconds >> shift & 1023] for shift in (40, 30, 20, 10, 0)])


def time_of(id: str) -> float | None:
    """When an id was made, by the clock of whoever made it; None for what is no such id."""
    number = 0
    for letter in id[:10]:
        if (digit := _ALPHABET.find(letter)) < 0:
            return None
        number = number * 32 + digit
    return number / 1000 if len(id) == 26 else None


def may_begin_id(text: str) -> bool:
    """Whether an id may begin with it, and is longer."""
    return len(text) < 26 and all(letter in _ALPHABET for letter in text)


def new_token() -> str:
    """A secret that proves ownership of one acquisition. Never derived, never reused."""
    return os.urandom(16).hex()
