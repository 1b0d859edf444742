"""The contract of the `Mover` port: everything arrives, in its order, and a held store refuses
writes."""

from __future__ import annotations

from holdfast.testing.contracts.mover_topics.arrival import ArrivalTopics
from holdfast.testing.contracts.mover_topics.continuation import ContinuationTopics
from holdfast.testing.contracts.mover_topics.marks import MarkTopics


class MoverContract(ArrivalTopics, ContinuationTopics, MarkTopics):
    """Subclass it and define `make_location`. No test sleeps: the clock is moved."""
