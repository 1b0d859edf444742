"""Which comments are analysed when there are more than one report takes: those with the smallest
hash of their content.

That is as good as drawing lots, and the same ones are drawn in every run, in whatever order the
rows stand."""

from __future__ import annotations

from collections.abc import Iterable


def largest_kept(weights: Iterable[int], most: int) -> int | None:
    """The weight up to which comments are kept, None if all are. At most twice as many as are kept
    are held."""
    smallest: list[int] = []
    over = False
    for weight in weights:
        smallest.append(weight)
        if len(smallest) >= 2 * most + 1:
            over = True
            smallest.sort()
            del smallest[most:]
    if not over and len(smallest) <= most:
        return None
    return sorted(smallest)[:most][-1] if most else -1
