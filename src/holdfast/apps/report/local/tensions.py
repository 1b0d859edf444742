"""Possible tensions: two claims about the same thing that seem to say opposite things of it.

Words alone say little about who disagrees, so this is a hint and is labelled as one. It is shown
only if both claims share most of their words and exactly one thing turns one of them round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from holdfast.apps.report.local.embeddings import semantic_vectors
from holdfast.apps.report.local.grouping import stem
from holdfast.apps.report.local.messages import message, people_count
from holdfast.apps.report.local.polarity import contradicts, polarity, without_cues
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.local.tokenizing import is_unspaced, stop_words, units
from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.crux import Basis, CruxDraft

_NEAR = 0.62
"""How similar two claims must be to be about the same thing."""
_SHARED = 0.6
"""The share of words that both must have, but for those that turn a statement round."""
_CONSIDERED = 600
_LONGEST = 160
"""Long claims say several things; what contradicts what can't be told."""


def tension(groups: Sequence[ClaimGroup], language: str) -> CruxDraft | None:
    """The most convincing pair of opposite claims, if there is one with different people on both
    sides."""
    considered = [group for group in groups[:_CONSIDERED] if len(group.statement) <= _LONGEST]
    pairs = sorted(_pairs(considered), key=lambda pair: (-pair[0], pair[1], pair[2]))
    for _, at, other in pairs:
        first, second = sorted(
            (considered[at], considered[other]), key=lambda group: -len(group.speakers)
        )
        agree = [speaker for speaker in first.speakers if speaker not in second.speakers]
        disagree = [speaker for speaker in second.speakers if speaker not in first.speakers]
        if agree and disagree:
            return _draft(first, second, agree, disagree, language)
    return None


def _pairs(groups: Sequence[ClaimGroup]) -> Iterator[tuple[float, int, int]]:
    """Pairs that contradict, with how convincing they are."""
    if len(groups) < 2:
        return
    vectors = semantic_vectors([group.statement for group in groups])
    similar = np.triu(vectors @ vectors.T, 1)
    for at, other in np.argwhere(similar >= _NEAR).tolist():
        first, second = groups[at], groups[other]
        shared = _shared(first.statement, second.statement)
        if shared >= _SHARED and contradicts(polarity(first.statement), polarity(second.statement)):
            support = min(len(first.speakers), len(second.speakers))
            yield round(float(similar[at, other]) + shared + 0.3 * support, 4), at, other


def _shared(statement: str, other_statement: str) -> float:
    """Which share of what two claims speak about they have in common, whatever they say of it."""
    subject, other_subject = _subject(statement), _subject(other_statement)
    return (
        len(subject & other_subject) / len(subject | other_subject)
        if subject & other_subject
        else 0.0
    )


@lru_cache(maxsize=16_384)
def _subject(statement: str) -> frozenset[str]:
    stop = frozenset[str]() if is_unspaced(statement) else stop_words(("en", "de", "fr", "es"))
    return frozenset(map(stem, units(without_cues(statement), stop)))


def _draft(
    first: ClaimGroup, second: ClaimGroup, agree: list[str], disagree: list[str], language: str
) -> CruxDraft:
    explanation = message(
        language,
        "tension",
        agree=people_count(language, len(agree)),
        disagree=people_count(language, len(disagree)),
        other=shortened(second.statement, _LONGEST),
    )
    return CruxDraft(
        first.statement,
        explanation,
        tuple(agree),
        tuple(disagree),
        (first.id, second.id),
        Basis.TENSION,
    )
