"""Finding a quote in the comment it is said to come from: the exact characters, or nothing.

Models quote almost exactly: other quotation marks, a lost line break, a capital letter, an ellipsis
in the middle. Such a quote is located by what does not change (letters and digits, folded), and
what is kept is always the comment's own text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

SHORTEST = 2
"""A match on fewer letters or digits says nothing."""


class Span(NamedTuple):
    start: int
    end: int


def locate(quote: str, text: str, start: int | None = None) -> Span | None:
    """Where `quote` stands in `text`, as characters of `text`. None if it does not."""
    if not quote.strip():
        return None
    if start is not None and text[start : start + len(quote)] == quote:
        return _trimmed(text, start, start + len(quote))
    index = text.find(quote)
    if index >= 0:
        return _trimmed(text, index, index + len(quote))
    return _located_by_letters(quote, text)


def _located_by_letters(quote: str, text: str) -> Span | None:
    letters, positions = _letters(text)
    pieces = [fragment for fragment in (_letters(part)[0] for part in _parts(quote)) if fragment]
    if sum(map(len, pieces)) < SHORTEST:
        return None
    first = end = -1
    for fragment in pieces:  # "a […] b" is quoted as everything from a to b
        index = letters.find(fragment, max(end, 0))
        if index < 0:
            return None
        first = index if first < 0 else first
        end = index + len(fragment)
    if len(pieces) > 1 and end - first > 4 * sum(map(len, pieces)) + 200:
        return None  # what was left out is most of it: that is no quote any more
    return _trimmed(text, positions[first], _after(text, positions[end - 1]))


def _parts(quote: str) -> list[str]:
    for mark in ("[...]", "[…]", "(...)", "(…)", "..."):
        quote = quote.replace(mark, "…")
    return quote.split("…")


@lru_cache(maxsize=256)
def _letters(text: str) -> tuple[str, tuple[int, ...]]:
    """Letters and digits, folded, and the place in the text that each one came from."""
    folded: list[str] = []
    positions: list[int] = []
    for index, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).casefold():
            if part.isalnum():
                folded.append(part)
                positions.append(index)
    return "".join(folded), tuple(positions)


def _after(text: str, last: int) -> int:
    """The end of a quote whose last letter is at `last`: marks that belong to that letter, and its
    full stop."""
    end = last + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    if end < len(text) and text[end] in ".!?。！？…":
        end += 1
    return end


def _trimmed(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end) if start < end else None
