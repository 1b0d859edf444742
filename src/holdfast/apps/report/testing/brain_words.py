"""Words and sentences as the fake model sees them."""

from __future__ import annotations

import re
from functools import lru_cache

SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
LATIN = re.compile(r"[^\W\d_]{3,}(?:['’][^\W\d_]+)?")
DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COMMON = (
    "about after again all also although always and any are because been before being both but "
    "came can could did does "
    "done down each even ever every few for from get give goes had has have here how into its just "
    "know less like made "
    "make many may more most much must need needs never not now off one only other our out over "
    "own people really "
    "same say should some such than that the their them then there these they thing things this "
    "those through too "
    "under until use very want was way well were what when where which while who why will with "
    "without would you your "
    "aber auch auf aus bei das dass dem den der des die dies eine einen einer für haben hat ich "
    "ihr ist kann mehr mit "
    "nach nicht noch nur oder sein sich sie sind über und uns von was wenn wer wie wir wird zum zur"
)
COMMON = frozenset(_COMMON.split())


@lru_cache(maxsize=1 << 14)
def words(text: str) -> tuple[str, ...]:
    """The telling words of a text; where words are not separated, pairs of signs."""
    separated = [
        word
        for word in map(str.lower, LATIN.findall(text))
        if word not in COMMON and not DENSE.search(word)
    ]
    dense = re.findall("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}", text)
    return (*separated, *(run[index : index + 2] for run in dense for index in range(len(run) - 1)))


def sentences(text: str) -> list[str]:
    """A text's sentences, letter for letter."""
    return [
        stripped
        for match in SENTENCE.finditer(text)
        if (stripped := match[0].strip()) and words(stripped)
    ]


def stated(quote: str) -> str:
    """A quote as a statement."""
    plain = " ".join(quote.split())[:200]
    return plain[:1].upper() + plain[1:]
