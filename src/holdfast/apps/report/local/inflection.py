"""What the forms of a word have in common, by language: "Radweg" and "Radwege", "l'eau" and
"d'eau".

By rule, without a dictionary: enough to count forms together, never to be shown."""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.apps.report.local.stop_words import word_set
from holdfast.apps.report.local.tokenizing import fold_case

COMPOUNDING = frozenset({"de", "nl", "sv"})
"""Languages that write compounds as one word."""
CAPITALISING = "de"
"""The language that writes nouns with a capital."""
WITH_ARTICLES = frozenset({"fr", "es", "it", "pt", "nl"})
"""Languages that hardly use a noun without an article or the like before it."""
DETERMINERS = word_set(
    """le la les un une des du au aux nos leur leurs notre votre ce cette ces mon ma mes son sa ses
    el los las unos unas una del al nuestro nuestra nuestros nuestras su sus mi mis este esta estos
    estas il lo gli i uno della dei delle degli dello alla nella dal dalla sul sulla ai os
    as um uma uns umas dos das meu minha seu sua mais de het een onze mijn deze dit
    chaque cada ogni l' d' un' dell' all' nell' dall' sull' quell' cet cette"""
)
"""Words before a noun in those languages, elided ones with their apostrophe."""
_ELIDING = frozenset({"fr", "it"})
_ELIDED = re.compile(
    r"(?:[cdjlmnst]|qu|un|(?:d|n|sul|qu)?ell|all|dall|degl)['’](?=\w)", re.IGNORECASE
)
_PLURALS = {"women": "woman", "men": "man", "children": "child", "kids": "kid", "wives": "wife"}
_UMLAUTS = str.maketrans("äöü", "aou")
_ENDINGS = {
    "de": ("ern", "em", "en", "er", "es", "e", "n", "s"),
    "nl": ("en", "s"),
    "sv": ("arna", "erna", "orna", "ar", "er", "or", "en", "et"),
}
_SHORTEST = 3
"""Letters that an ending leaves, at least."""
_HIDDEN, _REST = 4, 3
"""Letters of a word that counts inside a compound, and of the rest of the compound, at least."""


@lru_cache(maxsize=65_536)
def root(word: str, code: str = "en") -> str:
    """A word without case and, roughly, without the ending of a plural, possessive or case."""
    word = fold_case(word)
    if code in _ENDINGS:
        return _without_ending(word.translate(_UMLAUTS), _ENDINGS[code])
    if code in ("es", "fr", "pt"):
        bare = word[:-1] if len(word) > 4 and word.endswith(("s", "x")) else word
        return bare[:-1] if code == "es" and len(bare) > 4 and bare.endswith("e") else bare
    if code == "it":
        return word[:-1] if len(word) > 4 and word[-1] in "aeio" else word
    return _english(word)


def _without_ending(word: str, endings: tuple[str, ...]) -> str:
    ending = next((e for e in endings if word.endswith(e) and len(word) - len(e) >= _SHORTEST), "")
    return word.removesuffix(ending)


def _english(word: str) -> str:
    word = word.removesuffix("'s")
    word = _PLURALS.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def without_elision(word: str, code: str) -> tuple[str, str]:
    """What is elided before a word, with its apostrophe, and the word: "l'" and "eau"."""
    match = _ELIDED.match(word) if code in _ELIDING else None
    return (match.group(), word[match.end() :]) if match else ("", word)


def words_inside(compound: str) -> set[str]:
    """What may be a word at the beginning or the end of a compound; all are roots."""
    lengths = range(_HIDDEN, len(compound) - _REST + 1)
    return {part for n in lengths for part in (compound[:n], compound[-n:])}
