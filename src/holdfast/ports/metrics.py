"""Metrics: where counts and durations go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

Labels = Mapping[str, str]


class Sample(Struct, frozen=True):
    """A value of a metric of the cluster, as it is now."""

    name: str
    value: float
    labels: dict[str, str] = {}


class Metrics(Protocol):
    """A registry of the metrics in `model/metrics.py`, by their names and labels.

    Who may call: any thread. How long a call may block: never noticeably. Errors: none."""

    def count(self, name: str, labels: Labels, amount: float = 1.0) -> None:
        """Add to a counter."""
        ...

    def observe(self, name: str, seconds: float, labels: Labels) -> None:
        """Add to a histogram."""
        ...

    def set(self, name: str, value: float, labels: Labels) -> None:
        """Set a gauge."""
        ...

    def exposition(self, cluster: Iterable[Sample] = ()) -> bytes:
        """All of it as text, for whoever collects metrics, with values of the cluster if they are
        given."""
        ...
