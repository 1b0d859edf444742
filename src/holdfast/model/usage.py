"""What a piece of work consumed: tokens and money, with the unknown kept apart from nothing."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, omit_defaults=True):
    """Tokens and cost. `unpriced` counts the calls whose price is unknown: their cost is not in
    `cost`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __bool__(self) -> bool:
        return self.calls > 0 or self.total_tokens > 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
            self.calls + other.calls,
            self.unpriced + other.unpriced,
        )

    def __sub__(self, other: Usage) -> Usage:
        """What is left after taking `other` away; never less than nothing."""
        return Usage(
            max(0, self.input_tokens - other.input_tokens),
            max(0, self.output_tokens - other.output_tokens),
            max(0.0, self.cost - other.cost),
            max(0, self.calls - other.calls),
            max(0, self.unpriced - other.unpriced),
        )

    def count(
        self, input_tokens: int, output_tokens: int, cost: float | None, calls: int = 1
    ) -> None:
        """Add one call, or a share of one (`calls=0`). `cost=None` means that nobody knows its
        price."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.calls += calls
        if cost is None:
            self.unpriced += calls
        else:
            self.cost += cost
