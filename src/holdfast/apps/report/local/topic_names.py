"""Names of topics and subtopics: the phrase that many of their sentences share and few others
use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.apps.report.local.phrases import Phrase, Phrases
from holdfast.apps.report.local.stop_words import word_set

_JOINERS = {
    "en": " and ",
    "fr": " et ",
    "de": " und ",
    "es": " y ",
    "it": " e ",
    "pt": " e ",
    "nl": " en ",
    "sv": " och ",
    "ru": " и ",
    "ar": " و",
    "zh": "、",
    "ja": "・",
}
_AND = word_set("""and & und et y e en och""")
_NEARLY = 0.5
_MOST = 40
"""Candidates that are kept for each cluster."""
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
_FAINT = 0.4
"""A candidate that is so much worse than the name of the topic above would mislead."""
_ENOUGH = 0.4
"""If a phrase is in so much of a topic, it names it alone."""


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
    phrases: Phrases, rows: Sequence[int], speakers: Sequence[str], breadth: float = 0.7
) -> list[Candidate]:
    """The best candidates for some sentences, best first. `speakers` says whose each sentence of
    all is.

    The more `breadth`, the more it counts in how many of the sentences a phrase is.
    """
    inside: dict[str, list[int]] = {}
    for row in rows:
        for key in phrases.by_sentence.get(row, ()):
            inside.setdefault(key, []).append(row)
    scored = []
    for key, rows_with_phrase in inside.items():
        phrase, fitness = phrases.by_key[key], phrases.fitness[key]
        if fitness < 0.05 or len(rows_with_phrase) < max(2, len(rows) // 40):
            continue
        people = len({speakers[row] for row in rows_with_phrase})
        share, precision = (
            len(rows_with_phrase) / len(rows),
            (len(rows_with_phrase) + 0.5) / (len(phrase.sentences) + 1.5),
        )
        score = fitness * share**breadth * precision**0.6 * min(1.0, 0.45 + 0.2 * people)
        scored.append(Candidate(phrase, fitness, score, frozenset(rows_with_phrase)))
    return sorted(scored, key=lambda c: (-c.score, c.phrase.key))[:_MOST]


def keys(phrase: Phrase) -> frozenset[str]:
    """What two names must not share: their words, or their pairs of characters."""
    if phrase.unspaced:
        return frozenset(phrase.key[at : at + 2] for at in range(len(phrase.key) - 1))
    return frozenset(phrase.parts)


def compose_name(
    phrases: Phrases,
    ranked: Sequence[Candidate],
    size: int,
    language: str,
    taken: set[str],
    above: Sequence[Candidate] = (),
) -> tuple[str, list[Candidate]]:
    """A name from the best candidates: one phrase if it covers enough, otherwise two that cover
    different sentences.

    Names that are `taken` are not given again, nor a part of a phrase that names the topic `above`;
    what is about that topic and nothing else is called so. Empty if nothing is shared by enough
    sentences."""
    free = [
        c
        for c in ranked
        if _shown(phrases, c) not in taken and not any(_is_part(c, other) for other in above)
    ]
    general = capitalised(_GENERAL.get(language, "{}").format(join(phrases, above, language)))
    if above and (not free or free[0].score < _FAINT * ranked[0].score) and general not in taken:
        taken.add(general)
        return general, []
    if not free:
        return "", []
    chosen = [_fuller(free)]
    if len(chosen[0].inside) < _ENOUGH * size and (second := _second(chosen[0], free, size)):
        chosen.append(second)
    name = join(phrases, chosen, language)
    taken.add(name)
    return name, chosen


def join(phrases: Phrases, chosen: Sequence[Candidate], language: str) -> str:
    """ "A and B", as people of a language would write it."""
    return capitalised(
        _JOINERS.get(language, " / ").join(phrases.written(c.phrase) for c in chosen)
    )


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


def _second(first: Candidate, others: Sequence[Candidate], size: int) -> Candidate | None:
    """The best other phrase that covers a good part of what the first does not."""
    least = max(2, size // 12)
    if _AND & set(first.phrase.key.split()):
        return None
    scored = [
        (c.score * len(c.inside - first.inside) / len(c.inside), c)
        for c in others
        if len(c.inside) >= least and c.fitness > 0.3 and _stands_beside(c, first)
    ]
    plain = [pair for pair in scored if not _AND & set(pair[1].phrase.key.split())]
    return max(plain, key=lambda pair: (pair[0], pair[1].phrase.key))[1] if plain else None


def _stands_beside(candidate: Candidate, first: Candidate) -> bool:
    """Whether a second phrase is good enough to be named with the first: a single word has to be
    nearly as good."""
    needed = 0.7 if candidate.is_word else 0.5
    return candidate.score >= needed * first.score and _differ(candidate.phrase, first.phrase)


def _differ(phrase: Phrase, other: Phrase) -> bool:
    """Whether two phrases share no word, not even one that is written together here and apart
    there."""
    run, other_run = phrase.key.replace(" ", ""), other.key.replace(" ", "")
    return not keys(phrase) & keys(other) and run not in other_run and other_run not in run


def distinct_candidates(ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """The best candidates that share no word."""
    chosen: list[Candidate] = []
    for candidate in ranked:
        if len(chosen) < count and all(
            not keys(candidate.phrase) & keys(other.phrase) for other in chosen
        ):
            chosen.append(candidate)
    return chosen


def capitalised(name: str) -> str:
    return name[:1].upper() + name[1:]
