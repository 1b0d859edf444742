"""Run ids: 128 bits as 26 lower-case characters, ordered by the time they were made."""

from __future__ import annotations

import os

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]


def new_id(now: float) -> str:
    """A fresh id for something made at `now` (seconds since the epoch)."""
    number = (int(now * 1000) & 0xFFFFFFFFFFFF) << 80 | int.from_bytes(os.urandom(10))
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_token() -> str:
    """A secret that proves ownership of one acquisition. Never derived, never reused."""
    return os.urandom(16).hex()
