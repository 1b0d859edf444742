"""The context of a call that several items share: what it costs is divided among them, to the last
token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from holdfast.ports.context import Context


class SharedContext:
    """Looks like the first item's context, except that usage goes to all of them, by the size of
    their part."""

    def __init__(self, contexts: Sequence[Context], sizes: Sequence[int]) -> None:
        self._contexts = contexts
        self._bounds = [0, *accumulate(max(1, size) for size in sizes)]

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
        calls: int = 1,
    ) -> None:
        """One call's usage in parts that add up to it exactly, whatever the sizes are; the first
        counts the call."""
        inputs, outputs = self._parts(input_tokens), self._parts(output_tokens)
        costs = [None] * len(inputs) if cost is None else self._money(cost)
        for ctx, read, written, price in zip(self._contexts, inputs, outputs, costs, strict=True):
            ctx.usage(input_tokens=read, output_tokens=written, cost=price, calls=calls)
            calls = 0

    def _parts(self, total: int) -> list[int]:
        marks = [total * bound // self._bounds[-1] for bound in self._bounds]
        return [end - start for start, end in pairwise(marks)]

    def _money(self, cost: float) -> list[float]:
        parts = [cost * (end - start) / self._bounds[-1] for start, end in pairwise(self._bounds)]
        return [*parts[:-1], cost - sum(parts[:-1])]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._contexts[0], name)
