"""Sentences of a comment, as exact spans: `text[start:end]` is what was written.

Punctuation of any script ends a sentence; abbreviations, initials, decimals and ellipses inside one
do not. Spoken text that hardly ever ends a sentence is cut where a clause ends, so that a quote
stays short enough to read. What can't stand alone ("It does work.", "Not now.") stays with the
sentence before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.apps.report.local.tokenizing import UNSPACED, is_unspaced, language, words

Span = tuple[int, int]

SHORT, LONGEST, JOINED = 80, 280, 200
"""A comment up to SHORT characters is one span; no sentence is longer than LONGEST; what is joined
fits in JOINED."""
_DENSER = 0.4
"""A character without spaces between words says as much as two or three letters."""

_BREAK = re.compile(
    r"""(?P<full>[。！？｡؟۔।॥։።។။]+|．(?!\d))["'”’»›」』）)\]]*|(?P<stop>[.!?…]+)["'”’»)\]]*|(?P<line>\s*\n\s*)"""
)
_DENSE = re.compile(rf"[{UNSPACED}]")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|inc|ltd|co|corp|no|vol|fig|approx|dept|est|gov|sen|rep|e\.g|i\.e|eg|"
    r"ie|cf|al|"
    r"z\.B|bzw|ca|Nr|usw|u\.a|d\.h|ggf|ex|p\.ex|av|M|Mme|Sra|Sr|Dra|pág|núm|[A-Za-z])|[A-Z](?:\.[A-Z])+)\.$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:^|\n)\s*\(?\d{1,3}\.$")
_LEADING = re.compile(
    r"(?:[\s,;:.!?/|、，。…)\]}>]|[-–—*•·▪◦‣●■]+(?=\s)|\(?\d{1,2}[.)](?=\s)|[-–—•·▪◦‣●](?=[^\W\d_]))+"
)
_TRAILING = re.compile(r"[\s,;:/|、，(\[{<]+$")
_BULLET = re.compile(r"(?:[-–—*•·▪◦‣●■]|\(?\d{1,2}[.)])\s*\S")
_CLAUSES = (
    re.compile(r"[;；:：](?=\s|[^\s\d/])|\s[–—-]+\s|\s*\n\s*"),
    re.compile(
        r",\s+(?=(?:and|but|so|because|which|or|then|und|aber|weil|et|mais|car|parce|y|pero|porque|e|ma|mas)\b)|，"
    ),
    re.compile(r"[,、،]\s*"),
    re.compile(rf"(?<=[{UNSPACED}])\s+|\s+(?=(?:and|but|so|because|or)\b)"),
    re.compile(r"\s+"),
)
_DEPENDENT = {
    "en": r"(?:and|but|or|so|because|then|also|especially|not|it|it's|its|this|that|that's|these|"
    r"those|they|they're|"
    r"he|she|"
    r"his|her|their|them|which|who|otherwise|therefore|instead|same|for example|for instance|such "
    r"as|even|however|plus|"
    r"such|worth|including|either|neither|nor)\b",
    "de": r"(?:und|aber|oder|denn|weil|also|deshalb|dadurch|das|dies|diese|dieser|es|sie|er|"
    r"dann|nicht|auch|sonst|"
    r"zum Beispiel)\b",
    "fr": r"(?:et|mais|ou|car|parce|donc|alors|cela|ça|c'est|ce|ces|il|elle|ils|elles|pas|"
    r"aussi|sinon|par exemple)\b",
    "es": r"(?:y|pero|o|porque|así|entonces|eso|esto|esta|este|ellos|ellas|él|ella|no|"
    r"también|sino|por ejemplo)\b",
    "zh": r"(?:但|而且|而|且|所以|因此|因為|因为|它|他|她|這|这|那|其|並|并|也|又|還|还|"
    r"否則|否则|同時|同时|最重要|"
    r"況且|况且|更何況|反觀|反观)",
    "ja": r"(?:しかし|でも|だから|そして|それ|これ|また|なぜなら)",
}
_DEPENDENTS = {code: re.compile(pattern, re.IGNORECASE) for code, pattern in _DEPENDENT.items()}


def spans(text: str) -> list[Span]:
    """The sentences of a comment, or the whole comment if it is short. Empty for a text without
    anything but marks."""
    share = _DENSER if is_unspaced(text) else 1.0
    span = _trimmed(text, 0, len(text))
    if span and span[1] - span[0] <= SHORT * share and "\n" not in text[span[0] : span[1]]:
        return [span]
    pieces = [
        piece
        for start, end in _pieces(text)
        for piece in _shortened(text, start, end, int(LONGEST * share))
    ]
    return _joined(text, pieces, int(JOINED * share))


def _pieces(text: str) -> Iterator[Span]:
    """Between two breaks is a sentence."""
    start = 0
    for match in _BREAK.finditer(text):
        if _ends_sentence(text, match):
            if piece := _trimmed(text, start, match.end()):
                yield piece
            start = match.end()
    if piece := _trimmed(text, start, len(text)):
        yield piece


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if match["full"]:
        return True
    rest = text[match.end() : match.end() + 80]
    if match["line"]:
        return _ends_line(text, match, rest)
    if not rest.strip():
        return True
    if not rest[0].isspace():
        return _glued(text, match, rest)
    return match["stop"] != "." or _ends_with_dot(text, match, rest.lstrip())


def _ends_line(text: str, match: re.Match[str], rest: str) -> bool:
    """A line ends a sentence unless the text goes on in small letters: then it was only wrapped."""
    if match["line"].count("\n") > 1 or _BULLET.match(rest):
        return True
    return not rest[:1].islower()


def _glued(text: str, match: re.Match[str], rest: str) -> bool:
    """ "…resources!Climate change…": no space, and yet the end of one sentence and the beginning of
    another."""
    if match["stop"] == ".":
        before = text[max(0, match.start() - 3) : match.start()]
        return before.isalpha() and before.islower() and rest[0].isupper() and rest[1:2].islower()
    return rest[0].isupper() or bool(_DENSE.match(rest) or _DENSE.match(text, match.start() - 1))


def _ends_with_dot(text: str, match: re.Match[str], rest: str) -> bool:
    before = text[max(0, match.start() - 12) : match.start() + 1]
    if _ABBREVIATION.search(before) and not before.endswith((" I.", " no.")) and len(before) > 2:
        return False
    if _NUMBERED.search(text[max(0, match.start() - 6) : match.start() + 1]):
        return False
    return not rest[:1].islower() or text.lstrip(" \t\n\"'“‘(.").startswith(
        tuple("abcdefghijklmnopqrstuvwxyz")
    )


def _trimmed(text: str, start: int, end: int) -> Span | None:
    """Without white space, bullets and stray marks around it; None if there is no word."""
    if match := _LEADING.match(text, start, end):
        start = match.end()
    if match := _TRAILING.search(text[start:end]):
        end = start + match.start()
    return (start, end) if any(map(str.isalnum, text[start:end])) else None


def _shortened(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    """Parts of a sentence that is too long, about equally long, cut where a clause ends if there is
    such a place."""
    while end - start > longest:
        parts = -(-(end - start) // longest)
        cut = _best_cut(text, start, start + (end - start) // parts, start + longest)
        if piece := _trimmed(text, start, cut):
            yield piece
        start = cut
    if piece := _trimmed(text, start, end):
        yield piece


def _best_cut(text: str, start: int, aim: int, limit: int) -> int:
    earliest = start + (aim - start) // 2
    for clause in _CLAUSES:
        ends = [
            match.end() for match in clause.finditer(text, earliest, limit) if match.end() > start
        ]
        if ends:
            return min(ends, key=lambda end: (abs(end - aim), end))
    return limit


def _joined(text: str, pieces: list[Span], longest: int) -> list[Span]:
    joined: list[Span] = []
    for start, end in pieces:
        if joined and end - joined[-1][0] <= longest and _belongs(text, joined[-1], (start, end)):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _belongs(text: str, before: Span, after: Span) -> bool:
    """Whether a sentence can't stand without the one before it."""
    sentence, next_sentence = text[slice(*before)], text[slice(*after)]
    return _is_fragment(sentence) or _is_fragment(next_sentence) or _is_dependent(next_sentence)


def _is_fragment(sentence: str) -> bool:
    return len(sentence) < 8 if is_unspaced(sentence) else len(words(sentence)) < 4


def _is_dependent(sentence: str) -> bool:
    pattern = _DEPENDENTS.get(language(sentence))
    return bool(pattern and pattern.match(sentence.replace("’", "'").lstrip("\"'“‘«「")))
