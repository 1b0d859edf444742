"""Which rows are analysed, and why the others are not.

A row is kept whenever it could be a statement. Short answers are kept: "maybe", "idk" and "no" are
words, and whether they say something depends on the question. So is a figure ("15", "2030"), a
single ideograph, and everything that looks like a formula, a script or an order to a machine: it is
what somebody wrote. Left out is what has no words at all: marks and emoji alone, a single letter, a
long number. The same text counts once for the same person, and as often as it comes for different
or unnamed people: that is support."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple
from unicodedata import category

from holdfast.apps.report.model.comment import Fate
from holdfast.apps.report.reading.hash_set import HashSet, content_hash
from holdfast.apps.report.reading.notes import Note, Notes

LONGEST_FIGURE = 6
"""Digits of a number that may be an answer."""

_WORD = re.compile(r"[^\W\d_][\W_]*[^\W_]")  # a letter and something after it
_NOTHING = {"n/a", "#n/a", "<na>", "nan", "null", "(null)", "#value!", "#ref!"}
_INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u3164\u115f\u1160\uffa0\u2800")
)


class Verdict(NamedTuple):
    fate: Fate
    reason: str = ""
    weight: int = 0
    """A number that depends on who said what and nothing else: where there are too many, the
    smallest are kept."""


_EMPTY = Verdict(Fate.EMPTY, "there is no comment in this row")
_MODERATED = Verdict(Fate.MODERATED, "moderators rejected it (moderated is -1)")
_NO_WORDS = Verdict(Fate.JUNK, "there are no letters or figures in it")
_ONE_LETTER = Verdict(Fate.JUNK, "it is a single letter")
_LONG_NUMBER = Verdict(
    Fate.JUNK, f"it is nothing but a number of more than {LONGEST_FIGURE} digits"
)
_DUPLICATE = Verdict(Fate.DUPLICATE, "the same person said exactly the same in an earlier row")


class Screen:
    """Judges rows one after the other. It remembers what was said, in a few bytes for each row."""

    def __init__(self, longest: int, notes: Notes) -> None:
        self._longest = longest
        self._notes = notes
        self._said = HashSet()
        self._echoes: dict[int, int] = {}

    def judge(self, text: str, speaker: str, moderated: bool) -> Verdict:
        """What becomes of a comment. `speaker` is empty for somebody without a name."""
        if not text or text.isspace():
            return _EMPTY
        if moderated:
            return _MODERATED
        if len(text) > self._longest:
            return Verdict(
                Fate.TOO_LONG,
                f"it has {len(text):,} characters, and at most {self._longest:,} are analysed",
            )
        return self._wordless(text) or self._said_before(" ".join(text.split()).casefold(), speaker)

    def _wordless(self, text: str) -> Verdict | None:
        if _WORD.search(text) and len(text) > 12:
            return None
        visible = text.translate(_INVISIBLE).strip()
        if not visible:
            return _EMPTY
        if visible.lower() in _NOTHING:
            return Verdict(Fate.EMPTY, f"{visible!r} is what programs write into an empty cell")
        return _weigh_characters(visible)

    def _said_before(self, text: str, speaker: str) -> Verdict:
        weight = content_hash(speaker, text)
        if self._said.add(weight):
            return Verdict(Fate.KEPT, "", weight)
        if speaker:
            return _DUPLICATE
        self._notes[Note.ECHO] += 1
        self._echoes[weight] = echo = self._echoes.get(weight, 0) + 1
        return Verdict(Fate.KEPT, "", content_hash(text, str(echo)))


def _weigh_characters(text: str) -> Verdict | None:
    kinds = Counter(category(character)[0] for character in text)
    if not kinds["L"] and not kinds["N"]:
        return _NO_WORDS
    if (
        kinds["L"] == 1
        and not kinds["N"] + kinds["M"] + kinds["S"]
        and not any(map(_is_ideograph, text))
    ):
        return _ONE_LETTER
    if kinds["N"] > LONGEST_FIGURE and not kinds["L"]:
        return _LONG_NUMBER
    return None


def _is_ideograph(character: str) -> bool:
    """Whether one character is a word."""
    return (
        "\u3400" <= character <= "\u9fff"
        or "\uac00" <= character <= "\ud7a3"
        or character > "\U0001ffff"
    )
