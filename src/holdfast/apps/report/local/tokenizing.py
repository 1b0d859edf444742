"""Words, scripts and languages: what a text is made of, for counting and comparing.

Scripts without spaces (Han, kana, Thai, Khmer …) have no words that could be found by rule; there,
pairs of characters stand in for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from holdfast.apps.report.local.stop_words import LISTS

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""The letters of scripts that put no spaces between words, as a range of a regular expression."""

WORD = re.compile(
    rf"[{UNSPACED}]+|(?<![^\W_])(?:[A-Za-z]\.){{2,}}|(?:(?![{UNSPACED}])[^\W_])+(?:['’\-](?:(?![{UNSPACED}])[^\W_])+)*"
)
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
)
UNKNOWN = "und"
_HEAD = 2000
"""A language shows in the first characters: longer texts are not read to the end for it."""


def words(text: str) -> list[str]:
    """The words of a text as they are written; a run of letters without spaces is one."""
    return WORD.findall(text)


@lru_cache(maxsize=131_072)
def fold_case(word: str) -> str:
    """A word as it is compared: case and the typographic apostrophe do not matter."""
    return word.casefold().replace("’", "'")


def is_unspaced(text: str) -> bool:
    """Whether most letters of a text belong to a script without spaces."""
    letters = sum(map(len, _UNSPACED_RUN.findall(text)))
    return letters * 2 > sum(map(len, WORD.findall(text)))


def units(text: str, stop: frozenset[str] = frozenset()) -> list[str]:
    """What two texts may share: words but for stop words, and pairs of characters where there are
    no spaces."""
    units_found: list[str] = []
    for word in WORD.findall(text):
        if _UNSPACED_RUN.match(word):
            units_found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        elif (folded := fold_case(word)) not in stop:
            units_found.append(folded)
    return units_found


@lru_cache(maxsize=65_536)
def language(text: str) -> str:
    """The language a text seems to be in, by its script or its commonest words; `und` if neither
    tells."""
    text = text[:_HEAD]
    letters = sum(map(str.isalpha, text))
    for code, script in _SCRIPTS:
        if len(script.findall(text)) * 4 > letters > 0:
            return code
    words_of_text = {fold_case(word) for word in WORD.findall(text)}
    hits = {code: len(words_of_text & stop) for code, stop in LISTS.items()}
    best = max(hits, key=lambda code: (hits[code], code == "en"))
    return best if hits[best] else UNKNOWN


def languages(texts: Iterable[str]) -> list[str]:
    """The languages that at least a twentieth of the texts are in, most common first."""
    counts = Counter(language(text) for text in texts)
    counts.pop(UNKNOWN, None)
    total = sum(counts.values())
    return [
        code
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count * 20 >= total
    ]


@lru_cache(maxsize=256)
def stop_words(codes: tuple[str, ...]) -> frozenset[str]:
    """The stop words of some languages together."""
    return frozenset[str]().union(*(LISTS.get(code, frozenset()) for code in codes))
