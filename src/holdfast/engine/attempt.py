"""One attempt at one run: what everybody who takes part in it works with."""

from __future__ import annotations

from typing import Any

from holdfast.engine.gate import Gate
from holdfast.engine.graph import Graph, Plan
from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.model.commands import Claimed
from holdfast.model.pipeline import Pipeline


class Attempt:
    """Holds together the three parts of an attempt; each says itself who changes it.

    journal   what is known of the run: checkpoints, results, records, usage
    gate      the lease, and every write under it
    graph     which steps may begin, and the feeds of items between them
    """

    __slots__ = ("claimed", "gate", "graph", "journal", "over", "pipeline", "plan", "runtime")

    def __init__(
        self, claimed: Claimed, pipeline: Pipeline[Any], plan: Plan, lease: Lease, runtime: Runtime
    ) -> None:
        self.claimed = claimed
        self.pipeline = pipeline
        self.plan = plan
        self.runtime = runtime
        self.journal = Journal()
        self.gate = Gate(lease, runtime, self.journal)
        self.graph = Graph(plan)
        self.over = False
        """Set by `Execution` when nothing is executed any more."""

    def folder(self, step: str) -> str:
        """Where this attempt's blobs of a step go: nobody else writes there."""
        return f"{self.claimed.tenant}/{self.claimed.run}/{step}/{self.gate.epoch}"
