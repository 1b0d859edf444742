"""Which topic or claim of one report is which of another: those that quote the same comments."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.apps.report.model.taxonomy import OTHER
from holdfast.apps.report.outputs.differences import T, name_of

Evidence = frozenset[tuple[str, int]]
"""The comments something rests on: their words, and which of several with the same words."""

ALIKE = 0.2
"""The least share of common comments for two topics or claims to be the same one."""


def matched(
    before: Sequence[tuple[T, Evidence]], after: Sequence[tuple[T, Evidence]]
) -> list[tuple[int, int]]:
    """Who is who, the most alike first; nobody is matched twice."""
    alike = sorted(
        (-_likeness(before[old], after[new]), old, new) for old, new in _candidates(before, after)
    )
    pairs: list[tuple[int, int]] = []
    taken_before: set[int] = set()
    taken_after: set[int] = set()
    for likeness, old, new in alike:
        if -likeness >= ALIKE and old not in taken_before and new not in taken_after:
            pairs.append((old, new))
            taken_before.add(old)
            taken_after.add(new)
    return pairs


def _candidates(
    before: Sequence[tuple[T, Evidence]], after: Sequence[tuple[T, Evidence]]
) -> set[tuple[int, int]]:
    """Pairs that have a comment in common: comparing everything with everything would take too
    long."""
    by_comment: dict[tuple[str, int], list[int]] = {}
    for old, (_, evidence) in enumerate(before):
        for words in evidence:
            by_comment.setdefault(words, []).append(old)
    return {
        (old, new)
        for new, (_, evidence) in enumerate(after)
        for words in evidence
        for old in by_comment.get(words, ())
    }


def _likeness(old: tuple[T, Evidence], new: tuple[T, Evidence]) -> float:
    """The share of comments in common; one more for the same id or words, which decides between
    equals."""
    common = len(old[1] & new[1]) / (len(old[1] | new[1]) or 1)
    if OTHER in (old[0].id, new[0].id) and old[0].id != new[0].id:
        return 0.0
    return common + (old[0].id == new[0].id) + (name_of(old[0]) == name_of(new[0]))
