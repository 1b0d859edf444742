"""Names of topics and subtopics: the phrase that many of their sentences share and few others
use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.apps.report.local.phrases import Phrase, Phrases

_NEARLY = 0.5
_UNLIKE, _LIKE = 0.18, 1.2
"""What a phrase is worth that is not near in meaning, and how much more one is that is."""
_MOST = 40
"""Candidates that are kept for each cluster."""
_TWO, _TENTH, _ENOUGH = 2, 10, 6
"""What two people say can name something, of many people a tenth, and six in any case."""
_FIFTH = 5
"""A name shares a word with one and a fifth of what it names, or with enough of them."""
_GENERAL = {
    "en": "{} in general",
    "fr": "{} en général",
    "de": "{} allgemein",
    "es": "{} en general",
    "it": "{} in generale",
    "pt": "{} em geral",
    "nl": "{} in het algemeen",
    "zh": "{}（整體）",
    "ja": "{}全般",
}
_FAINT = 0.6
"""A candidate that is so much worse than the name of the topic above would mislead."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A phrase that could name a cluster, and in which of its sentences it is."""

    phrase: Phrase
    fitness: float
    score: float
    inside: frozenset[int]

    @property
    def is_word(self) -> bool:
        return len(self.phrase.parts) == 1


def candidates(
    phrases: Phrases,
    rows: Sequence[int],
    speakers: Sequence[str],
    nearness: Callable[[str], float],
    breadth: float = 0.7,
    least: float = 0.0,
) -> list[Candidate]:
    """The best candidates for some sentences, best first. `speakers` says whose each sentence of
    all is; `nearness`, how near a phrase is in meaning to what sets the sentences apart.

    The more `breadth`, the more it counts in how many of the sentences a phrase is; it has to be in
    the `least` share of them.
    """
    inside: dict[str, list[int]] = {}
    fewest = _fewest(len({speakers[row] for row in rows}))
    for row in rows:
        for key in phrases.by_sentence.get(row, ()):
            inside.setdefault(key, []).append(row)
    with_word = _rows_by_word(phrases, inside)
    enough = min(_ENOUGH, round(1 + len(rows) / _FIFTH))
    scored = []
    for key, rows_with_phrase in inside.items():
        phrase, fitness = phrases.by_key[key], phrases.fitness[key]
        if fitness < 0.05 or len(rows_with_phrase) < max(2, least * len(rows)):
            continue
        if max(len(with_word[word]) for word in _telling(phrase)) < enough:
            continue
        people = len({speakers[row] for row in rows_with_phrase})
        if people < fewest:  # what one person says names nothing that several speak about
            continue
        share, precision = (
            len(rows_with_phrase) / len(rows),
            (len(rows_with_phrase) + 0.5) / (len(phrase.sentences) + 1.5),
        )
        score = fitness * share**breadth * precision**0.6 * min(1.0, 0.45 + 0.2 * people)
        scored.append(Candidate(phrase, fitness, score, frozenset(rows_with_phrase)))
    best = sorted(scored, key=lambda c: (-c.score, c.phrase.key))[:_MOST]
    weighed = [
        replace(c, score=c.score * (_UNLIKE + _LIKE * nearness(phrases.written(c.phrase))))
        for c in best
    ]
    return sorted(weighed, key=lambda c: (-round(c.score, 6), c.phrase.key))


def _telling(phrase: Phrase) -> tuple[str, ...]:
    """The words of which one must be said often enough: where there are no spaces the last two
    characters, which say what it is that the others describe."""
    return (phrase.key[-2:],) if phrase.unspaced else phrase.parts


def _rows_by_word(phrases: Phrases, inside: Mapping[str, Sequence[int]]) -> dict[str, set[int]]:
    """For each word of the phrases, or pair of characters, the rows that it is in."""
    with_word: dict[str, set[int]] = {}
    for key, rows in inside.items():
        for word in keys(phrases.by_key[key]):
            with_word.setdefault(word, set()).update(rows)
    return with_word


def _fewest(people: int) -> int:
    """How many of some people must use a phrase for it to name what they all speak about."""
    return max(min(_TWO, people // 2), min(_ENOUGH, people // _TENTH))


def keys(phrase: Phrase) -> frozenset[str]:
    """What two names must not share: their words, or their pairs of characters."""
    if phrase.unspaced:
        return frozenset(phrase.key[at : at + 2] for at in range(len(phrase.key) - 1))
    return frozenset(phrase.parts)


def compose_name(
    phrases: Phrases,
    ranked: Sequence[Candidate],
    language: str,
    taken: set[str],
    above: Sequence[Candidate] = (),
    comments: Collection[int] = (),
) -> tuple[str, Candidate | None]:
    """A name from the best candidates: one phrase, never two joined to hide a mixed group.

    Names that are `taken` are not given again, nor a part of a phrase that names the topic `above`;
    what is about that topic and nothing else is called so, if enough of its `comments` use that
    name. Empty if nothing is shared by enough of them."""
    free = [
        c
        for c in ranked
        if _shown(phrases, c) not in taken and not any(_is_part(c, other) for other in above)
    ]
    is_general = above and len(above[0].inside.intersection(comments)) * _TENTH >= len(comments)
    if is_general and (not free or free[0].score < _FAINT * ranked[0].score):
        general = capitalised(_general(phrases, above[0], language))
        if general not in taken:
            taken.add(general)
            return general, None
    if not free:
        return "", None
    chosen = _fuller(free)
    name = _shown(phrases, chosen)
    taken.add(name)
    return name, chosen


def _general(phrases: Phrases, above: Candidate, language: str) -> str:
    """What is about a topic and nothing else, as people who write its name would say it."""
    if above.phrase.unspaced and language not in ("zh", "ja"):
        language = "zh"
    return _GENERAL.get(language, "{}").format(phrases.written(above.phrase))


def _fuller(free: Sequence[Candidate]) -> Candidate:
    """The best candidate; instead of a single word a longer phrase with it that is nearly as
    good."""
    best = free[0]
    short, long = (3, 4) if best.phrase.unspaced else (1, 2)
    fuller = [
        c for c in free if c.score > _NEARLY * best.score and keys(best.phrase) < keys(c.phrase)
    ]
    fuller = [c for c in fuller if len(c.phrase.parts) >= long]
    return fuller[0] if len(best.phrase.parts) <= short and fuller else best


def _shown(phrases: Phrases, candidate: Candidate) -> str:
    return capitalised(phrases.written(candidate.phrase))


def _is_part(candidate: Candidate, other: Candidate) -> bool:
    return keys(candidate.phrase) < keys(other.phrase)


def capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]
