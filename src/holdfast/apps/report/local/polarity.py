"""Whether two statements that look alike say opposite things.

Vectors hardly see a "not": two statements that differ by it alone are near neighbours. So what
turns a statement round is counted apart: negations, and words that have an opposite (more and less,
allow and ban, support and oppose). Two statements are kept apart when the signs do not agree, when
they speak of opposite sides (men and women, rich and poor), of different numbers, when one asks and
the other says, or when the same words come in another order ("landlords exploit tenants"). It errs
on the side of keeping apart: two claims that were not merged are a blemish, a person counted for
the opposite of what they said is a wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from holdfast.apps.report.local.cues import IDIOMS, NEGATION, SIDES, side_cues, turning_cues
from holdfast.apps.report.local.tokenizing import UNSPACED, language, stop_words, units

_PREFIX = re.compile(r"(?:un|de|in|im|il|ir|dis|non-?|anti-?|miss|miß|dés|des)(?=\w{3})")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DENSE = re.compile(rf"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Polarity:
    """What turns a statement one way or the other."""

    sign: int
    """1 or −1: the product of everything that turns it round."""
    negations: int
    idioms: int
    """Negations that deny nothing ("not only"): they still change what is said."""
    axes: dict[str, tuple[int, ...]]
    """For each pair of opposites that is touched, the signs in their order."""
    sides: tuple[int, ...]
    """For each pair of sides: 1 the one, −1 the other, 0 both or neither."""
    numbers: frozenset[str]
    asks: bool
    words: tuple[str, ...]
    """Words of content, in their order."""


@lru_cache(maxsize=32_768)
def polarity(text: str) -> Polarity:
    """What a statement stands for, as far as its words show."""
    plain, idioms = IDIOMS.subn(" ", text.replace("’", "'"))
    cues = turning_cues(plain)
    axes: dict[str, tuple[int, ...]] = {}
    for axis, sign in (cue.label for cue in cues if cue.label[0] != NEGATION):
        axes[axis] = (*axes.get(axis, ()), sign)
    return Polarity(
        sign=-1 if sum(cue.label[1] < 0 for cue in cues) % 2 else 1,
        negations=sum(cue.label[0] == NEGATION for cue in cues),
        idioms=idioms,
        axes=axes,
        sides=_sides(plain),
        numbers=frozenset(_NUMBER.findall(plain)),
        asks=plain.rstrip("\"'”’ ").endswith(("?", "？", "؟")),
        words=tuple(units(text, stop_words((language(text), "en")))),
    )


def _sides(text: str) -> tuple[int, ...]:
    labels = {cue.label for cue in side_cues(text)}
    return (
        tuple(((str(at), 1) in labels) - ((str(at), -1) in labels) for at in range(SIDES))
        if labels
        else _NO_SIDE
    )


_NO_SIDE = (0,) * SIDES


def without_cues(text: str) -> str:
    """A statement without the words that turn it one way or the other: what it speaks about."""
    text = text.replace("’", "'")
    for cue in reversed(turning_cues(text)):
        text = f"{text[: cue.start]} {text[cue.end :]}"
    return text


def opposed(first: Polarity, second: Polarity) -> bool:
    """Whether two statements must not be taken for the same: to speak of women is not to speak of
    everybody."""
    return (
        first.sign != second.sign
        or (first.negations, first.idioms) != (second.negations, second.idioms)
        or first.asks != second.asks
        or first.sides != second.sides
        or any(
            first.axes[axis] != second.axes[axis] for axis in first.axes.keys() & second.axes.keys()
        )
        or first.numbers != second.numbers
        or denied(first.words, second.words)
        or denied(second.words, first.words)
        or _swapped(first.words, second.words)
    )


def denied(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one says "fair" and the other "unfair"."""
    opposites = set(others)
    for word in set(words) - opposites:
        match = _PREFIX.match(word)
        if match and len(word) - match.end() > 2 and word[match.end() :] in opposites:
            return True
    return False


def _swapped(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether nearly the same words come in another order."""
    shared = set(words) & set(others)
    enough = 0.5 if any(_DENSE.match(word) for word in shared) else 0.8
    if len(shared) < 2 or len(shared) < enough * len(set(words) | set(others)):
        return False
    ours, theirs = (
        [word for word in dict.fromkeys(sequence) if word in shared] for sequence in (words, others)
    )
    return ours != theirs and not _turned_about(ours, theirs)


def _turned_about(words: list[str], others: list[str]) -> bool:
    """Whether only the two halves of a sentence changed places ("In the years ahead, …"): nobody's
    part is changed."""
    return len(words) > 3 and any(words[at:] + words[:at] == others for at in range(1, len(words)))


def contradicts(first: Polarity, second: Polarity) -> bool:
    """Whether two statements about the same thing say opposite things of it: exactly one thing
    turns one of them round.

    Narrower than `opposed`: other sides, numbers and questions make two statements different, not
    opposite."""
    if first.asks or second.asks or first.idioms != second.idioms:
        return False
    if any(ours * theirs < 0 for ours, theirs in zip(first.sides, second.sides, strict=True)):
        return False
    turned = [
        axis
        for axis in first.axes.keys() & second.axes.keys()
        if first.axes[axis] != second.axes[axis]
    ]
    if denied(first.words, second.words) or denied(second.words, first.words):
        return first.negations == second.negations and len(turned) < 2
    if abs(first.negations - second.negations) == 1:
        return not turned and first.axes.keys() == second.axes.keys()
    return first.negations == second.negations and len(turned) == 1 and first.sign != second.sign
