"""What a report will cost, before it is made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step. `cost` is in US dollars; None if the price is unknown."""

    step: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    model: str
    comments: int
    steps: tuple[StepEstimate, ...]
    least_seconds: float = 0.0
    """How long it takes at least under the limits of the model's address; 0 if it has none."""
    timeout_seconds: float = 0.0
    """How long an attempt of the run may take."""

    @property
    def calls(self) -> int:
        return sum(step.calls for step in self.steps)

    @property
    def input_tokens(self) -> int:
        return sum(step.input_tokens for step in self.steps)

    @property
    def output_tokens(self) -> int:
        return sum(step.output_tokens for step in self.steps)

    @property
    def cost(self) -> float | None:
        known = [step.cost for step in self.steps if step.cost is not None]
        return sum(known) if len(known) == len(self.steps) else None
