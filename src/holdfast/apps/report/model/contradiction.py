"""Whether two short statements contradict each other: cheap, careful, and only used to keep claims
apart.

Two statements that are about the same thing and differ in an odd number of turns (not, never,
against, less …) say opposite things. Wrongly kept apart is a blemish; wrongly merged is a lie, so
doubt keeps apart."""

from __future__ import annotations

import re
from functools import lru_cache

NEGATIONS = frozenset(
    {
        "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "cannot", "without",
        "stop", "refuse", "ban",
        "nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ohne", "gegen",
        "pas", "jamais", "aucun", "aucune", "sans", "contre",
        "nunca", "ningún", "ninguna", "jamás", "sin", "contra", "tampoco",
        "non", "mai", "nessun", "nessuna", "senza", "contro", "não", "nem", "sem",
        "niet", "geen", "nooit", "zonder", "tegen",
    }
)  # fmt: skip
CJK_NEGATIONS = re.compile(r"不|沒|没|無|无|非|未|別|别|勿|反對|反对|ない|ません|なく|ぬ")
PAIRS = (
    "support oppose", "supports opposes", "for against", "increase decrease", "increase reduce",
    "more less", "more fewer", "raise lower", "higher lower", "good bad", "better worse",
    "open close", "allow forbid", "allow prohibit", "keep remove", "keep abolish",
    "expensive cheap", "safe dangerous", "safer dangerous", "easy hard", "helps hurts", "help hurt",
    "helps harms", "help harm", "agree disagree", "right wrong", "necessary unnecessary",
    "fair unfair", "legal illegal", "love hate", "like dislike", "build demolish",
    "too-much too-little", "too-many too-few", "pro contra", "mehr weniger", "plus moins",
    "más menos",
)  # fmt: skip
WORD = re.compile(r"[\w'’-]+")


@lru_cache(maxsize=8192)
def turns(statement: str) -> int:
    """How often a statement is turned around by a negation."""
    words = _words(statement)
    return sum(word in NEGATIONS or word.endswith("n't") for word in words) + len(
        CJK_NEGATIONS.findall(statement)
    )


def contradict(statement: str, other: str) -> bool:
    """Whether one of them seems to deny the other."""
    if statement == other:
        return False
    return (turns(statement) + turns(other) + _swaps(statement, other)) % 2 == 1


def _swaps(statement: str, other: str) -> int:
    """How many pairs of opposite words stand on different sides."""
    words, other_words = _words(statement), _words(other)
    count = 0
    for pair in PAIRS:
        left, right = pair.split()
        count += (
            _has(words, left)
            and not _has(words, right)
            and _has(other_words, right)
            and not _has(other_words, left)
        )
        count += (
            _has(words, right)
            and not _has(words, left)
            and _has(other_words, left)
            and not _has(other_words, right)
        )
    return count


def _has(words: frozenset[str], word: str) -> bool:
    return all(part in words for part in word.split("-"))


@lru_cache(maxsize=8192)
def _words(statement: str) -> frozenset[str]:
    return frozenset(word.replace("’", "'") for word in WORD.findall(statement.lower()))
