"""For tests and benchmarks: how much of what was said was understood."""

from __future__ import annotations

import re
from collections.abc import Sequence


def word_error_rate(reference: str, hypothesis: str) -> float:
    """Words that have to be changed, added or removed, for each word that was said. Case and
    punctuation do not count."""
    expected, words = _words(reference), _words(hypothesis)
    if not expected:
        raise ValueError("nothing was said")
    return _distance(expected, words) / len(expected)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def _distance(first: Sequence[str], second: Sequence[str]) -> int:
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        previous, row[0] = row[0], number
        for column, other in enumerate(second, 1):
            changed = previous + (word != other)
            previous, row[column] = row[column], min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]
