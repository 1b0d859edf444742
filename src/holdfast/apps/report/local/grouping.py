"""Claims that say the same, put together: alike in meaning, sharing their words, and not opposed.

Groups are stars: every member resembles the claim that leads the group, not just some other member,
so that a chain of small steps never joins two different claims, and everybody counted stands behind
the words that are shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, log

import numpy as np

from holdfast.apps.report.local.embeddings import Vectors, semantic_vectors, unit_length
from holdfast.apps.report.local.polarity import opposed, polarity, without_cues
from holdfast.apps.report.local.sentence_value import stands_alone
from holdfast.apps.report.local.tokenizing import WORD, fold_case, is_unspaced, stop_words, units
from holdfast.apps.report.model.claim import ProposedGroup, QuotedClaim
from holdfast.apps.report.self_description import describes_author

SURE, LIKELY = 0.86, 0.74
"""Cosines: above the first, sharing a good third of what is said is enough; between the two,
half."""
_SHARED = {"sure": 0.36, "likely": 0.48, "about oneself": 0.75, "unspaced": 0.38}
"""How much of what two statements say must be in both, rare words weighing more than common
ones."""
_ABOUT_ONESELF = re.compile(
    r"(?:i identify|i am|i'm|i consider|i was|i have|as a)\b|我是", re.IGNORECASE
)
"""What people say of themselves differs by a word: "middle class" is not "wealthy"."""
_CLOSE = 0.8
_STOP = stop_words(("en", "de", "fr", "es"))
_UNCLEAR = 0.5
"""How much less typical a statement counts that can't be understood alone."""
_BLOCK = 512
_NEIGHBOURS = 60
"""So many of the most similar claims are looked at for each."""
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ied",
    "ed",
    "es",
    "s",
    "e",
    "y",
)


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as it is compared."""

    statement: str
    stems: frozenset[str]
    unspaced: bool
    about_oneself: bool


def group(claims: Sequence[QuotedClaim]) -> list[ProposedGroup]:
    """Every claim in exactly one group: the largest first, and among equals the most typical of
    all."""
    same: dict[str, list[QuotedClaim]] = {}
    for claim in claims:
        same.setdefault(_bare(claim.statement), []).append(claim)
    members = list(same.values())
    texts = [_text(same_claims[0].statement) for same_claims in members]
    vectors = semantic_vectors([text.statement for text in texts])
    stars = _stars(texts, _alike(texts, vectors), list(map(len, members)))
    alone = np.array([stands_alone(text.statement) for text in texts])
    typical = vectors @ unit_length(vectors.sum(axis=0, keepdims=True))[0] - _UNCLEAR * ~alone
    typical = np.round(typical, 3)
    sizes = [sum(len(members[at]) for at in star) for star in stars]
    order = sorted(
        range(len(stars)), key=lambda at: (-sizes[at], -typical[stars[at][0]], stars[at][0])
    )
    return [
        _grouping([members[at] for at in stars[number]], float(typical[stars[number][0]]))
        for number in order
    ]


def _bare(text: str) -> str:
    """A statement without case, spaces and marks; itself if there is nothing else."""
    return "".join(map(fold_case, WORD.findall(text))) or text


def _text(statement: str) -> _Text:
    stems = frozenset(map(stem, units(statement, frozenset() if is_unspaced(statement) else _STOP)))
    about_oneself = bool(_ABOUT_ONESELF.match(statement.replace("’", "'"))) or describes_author(
        statement
    )
    return _Text(statement, stems, is_unspaced(statement), about_oneself)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without its commonest English endings: "impeached" and "impeach" are one."""
    word = word.replace("'s", "").replace("-", "")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)]
    return word


def _alike(texts: Sequence[_Text], vectors: Vectors) -> list[dict[int, float]]:
    """For each statement the others that say the same, with how similar they are."""
    rarity = _rarity(texts)
    similar: list[dict[int, float]] = [{} for _ in texts]
    for start in range(0, len(texts), _BLOCK):
        block = vectors[start : start + _BLOCK] @ vectors.T
        for at, row in enumerate(block, start):
            for other in _nearest(row, at):
                if other not in similar[at] and _same(
                    texts[at], texts[other], float(row[other]), rarity
                ):
                    similar[at][other] = similar[other][at] = float(row[other])
    return similar


def _rarity(texts: Sequence[_Text]) -> dict[str, float]:
    present = Counter(stem for text in texts for stem in text.stems)
    return {stem: 1 + log((len(texts) + 1) / (count + 1)) for stem, count in present.items()}


def _nearest(row: Vectors, own: int) -> list[int]:
    near = np.flatnonzero(row >= LIKELY)
    near = near[near != own]
    if len(near) > _NEIGHBOURS:
        near = near[np.argsort(-row[near], kind="stable")[:_NEIGHBOURS]]
    return near.tolist()


def _same(text: _Text, other: _Text, similarity: float, rarity: Mapping[str, float]) -> bool:
    needed = _needed(text, other, similarity)
    if _shared(text.stems, other.stems, rarity) < needed:
        turned = (
            (_turned(text.statement), _turned(other.statement)) if similarity >= _CLOSE else None
        )
        if turned is None or _shared(*turned, rarity) < needed:
            return False
    return not opposed(polarity(text.statement), polarity(other.statement))


def _shared(
    stems: frozenset[str], other_stems: frozenset[str], rarity: Mapping[str, float]
) -> float:
    """How much of what two statements say is in both, rare words weighing more."""
    everything = fsum(rarity.get(stem, 1.0) for stem in stems | other_stems)
    return (
        fsum(rarity.get(stem, 1.0) for stem in stems & other_stems) / everything
        if everything
        else 0.0
    )


@lru_cache(maxsize=16_384)
def _turned(statement: str) -> frozenset[str]:
    """The stems of a statement with all words that turn it the same way taken for one: "end" and
    "abolish"."""
    cues = {f"{axis} {signs}" for axis, signs in polarity(statement).axes.items()}
    return frozenset(map(stem, units(without_cues(statement), _STOP))) | cues


def _needed(text: _Text, other: _Text, similarity: float) -> float:
    if text.unspaced or other.unspaced:
        return _SHARED["unspaced"]
    if text.about_oneself and other.about_oneself:
        return _SHARED["about oneself"]
    return _SHARED["sure" if similarity >= SURE else "likely"]


def _stars(
    texts: Sequence[_Text], alike: Sequence[dict[int, float]], weights: Sequence[int]
) -> list[list[int]]:
    """Groups of statements, each led by its first: the one that most people's words resemble
    leads."""
    free = set(range(len(texts)))
    support = [weights[at] + sum(weights[other] for other in alike[at]) for at in range(len(texts))]
    order = sorted(free, key=lambda at: (-support[at], len(texts[at].statement), at))
    stars = []
    for leader in order:
        if leader not in free:
            continue
        free.discard(leader)
        star = [leader]
        for other in sorted(alike[leader], key=lambda other: (-alike[leader][other], other)):
            if other in free and not _opposes(texts[other], (texts[member] for member in star[1:])):
                star.append(other)
                free.discard(other)
        stars.append(star)
    return stars


def _opposes(text: _Text, members: Iterable[_Text]) -> bool:
    return any(opposed(polarity(text.statement), polarity(member.statement)) for member in members)


def _grouping(star: Sequence[Sequence[QuotedClaim]], centrality: float) -> ProposedGroup:
    leader = star[0][0]
    members = tuple(claim.id for same in star for claim in same)
    return ProposedGroup(leader.statement, members, round(centrality, 3))
