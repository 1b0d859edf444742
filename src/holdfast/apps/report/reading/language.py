"""Which language most comments are in: by script where a script is enough, by small words where it
is not.

A sample of a few hundred comments is enough to name a default for the report; it is no judgement
about any one comment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

UNKNOWN = "und"
ENOUGH = 100_000
"""Characters to look at, and how many of each comment."""
SHARE = 400

# Where one script means one language, or several that small signs tell apart.
_SCRIPTS = (
    ("ja", "\u3040-\u30ff\uff66-\uff9f"),
    ("ko", "\uac00-\ud7a3\u1100-\u11ff"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff"),
    ("ru", "\u0400-\u052f"),
    ("ar", "\u0600-\u06ff\u0750-\u077f"),
    ("he", "\u0590-\u05ff"),
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("th", "\u0e00-\u0e7f"),
    ("hi", "\u0900-\u097f"),
    ("bn", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("km", "\u1780-\u17ff"),
    ("my", "\u1000-\u109f"),
    ("lo", "\u0e80-\u0eff"),
    ("ka", "\u10a0-\u10ff"),
    ("hy", "\u0530-\u058f"),
    ("am", "\u1200-\u137f"),
)
_SCRIPT = re.compile("|".join(f"(?P<{name}>[{characters}]+)" for name, characters in _SCRIPTS))
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f\u1e00-\u1eff]+")
_RELATIVES = {
    "ru": (("uk", "іїєґІЇЄҐ"), ("sr", "ђјљњћџЂЈЉЊЋЏ")),
    "ar": (("ur", "ٹڈڑےں"), ("fa", "پچژگ")),
}

# Small words that a text of some length can hardly do without, and that its neighbours lack for the
# most part.
_SMALL_WORDS = {
    "en": "the and of to is that it for are we should be with have this not on they i you more",
    "fr": (
        "le la les de des et est que pour dans une un pas nous plus sur il qui avec ne ce vous je"
    ),
    "de": (
        "der die das und ist nicht zu den für mit ein eine es auf wir sie ich mehr auch sind "
        "werden sollte"
    ),
    "es": "el la los las de que y es en un una para no por con se más del como lo todos está",
    "it": "il la di che e è un una per non con sono del della le gli più anche questo si ci nel",
    "pt": "o a os as de que e é um uma para não com do da em mais se por são ao no na dos",
    "nl": "de het een en van is dat niet te voor met zijn op er ik we meer ook moeten maar worden",
    "sv": "och att det är som på en inte för med den av jag vi har de om mer ska till ett",
    "da": "og at det er ikke på en for med den af jeg vi har de til skal mere et der være",
    "no": "og at det er ikke på en for med den av jeg vi har de til skal mer et som være",
    "fi": (
        "ja on ei se että hän mutta ovat kun niin myös olisi pitäisi olla tai kuin jos mitä sen voi"
    ),
    "pl": "i w na nie to się z do jest że jak są dla przez tak ale być więcej o po powinny",
    "cs": "a je to se na že v ne s by jsou ale jako pro více aby by jsem ve být i",
    "ro": "și de la în nu este că pe cu un o mai sunt să din pentru care ar fi ca",
    "hu": "a az és nem hogy is egy van meg ez csak több már kell mert vagy lenne ha be el",
    "tr": "bir ve bu için çok da de daha ne olarak gibi ama var değil ile olmalı olan mi en kadar",
    "id": (
        "yang dan di untuk dengan tidak ini itu dari adalah ada harus akan pada juga lebih kami "
        "saya bisa oleh"
    ),
    "vi": "và của là không có được cho các người trong một với này đã để những phải chúng tôi nên",
}
_BY_WORD: dict[str, list[str]] = {}
for _language, _words in _SMALL_WORDS.items():
    for _word in set(_words.split()):
        _BY_WORD.setdefault(_word, []).append(_language)


class LanguageSample:
    """Collects comments until there is enough to tell."""

    def __init__(self) -> None:
        self._left = ENOUGH
        self._scripts: Counter[str] = Counter()
        self._signs: Counter[str] = Counter()
        self._hits: Counter[str] = Counter()
        self._words = 0

    def add(self, text: str) -> None:
        if self._left > 0:
            text = text[:SHARE]
            self._left -= len(text)
            self._count_scripts(text)
            self._count_words(_LATIN.findall(text))

    @property
    def language(self) -> str:
        """The code of the language, `und` when it can't be told."""
        script, letters = _top(self._scripts)
        if letters < 4 or 2 * letters < self._scripts.total():
            return UNKNOWN
        if script == "latin":
            return self._by_words()
        return self._relative(self._japanese_or(script))

    def _count_scripts(self, text: str) -> None:
        self._scripts["latin"] += sum(map(len, _LATIN.findall(text)))
        for match in _SCRIPT.finditer(text):
            # An ideograph or a syllable says as much as two or three letters.
            name = match.lastgroup or ""
            weight = 2 if name in ("ja", "ko", "zh") else 1
            self._scripts["zh" if name == "ja" else name] += weight * len(match[0])
            self._signs[name] += len(match[0])
            for relative, characters in _RELATIVES.get(name, ()):
                self._signs[relative] += any(character in characters for character in match[0])

    def _count_words(self, words: Iterable[str]) -> None:
        for word in words:
            self._words += 1
            self._hits.update(_BY_WORD.get(word.lower(), ()))

    def _by_words(self) -> str:
        (language, hits), (_, second) = [*self._hits.most_common(2), ("", 0), ("", 0)][:2]
        clear = hits >= 2 and hits >= 0.08 * self._words and hits >= 1.1 * second
        return language if clear else UNKNOWN

    def _japanese_or(self, script: str) -> str:
        """Kana among the ideographs make it Japanese."""
        return "ja" if script == "zh" and 5 * self._signs["ja"] > self._signs["zh"] else script

    def _relative(self, language: str) -> str:
        """Ukrainian rather than Russian, and so on: when every twentieth word has a letter that
        only it has."""
        for relative, _ in _RELATIVES.get(language, ()):
            if 100 * self._signs[relative] > self._signs[language]:
                return relative
        return language


def _top(counts: Counter[str]) -> tuple[str, int]:
    return counts.most_common(1)[0] if counts else ("", 0)
