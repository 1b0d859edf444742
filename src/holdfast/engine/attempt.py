"""One attempt at one run: what everybody who takes part in it works with."""

from __future__ import annotations

from typing import Any

from holdfast.engine.gate import Gate
from holdfast.engine.graph import Graph, Plan
from holdfast.engine.journal import Journal
from holdfast.engine.lease import Lease
from holdfast.engine.runtime import Runtime
from holdfast.model.commands import Claimed
from holdfast.model.names import path_part
from holdfast.model.pipeline import Pipeline

SAVED_WITHIN = 0.02
"""Seconds: what is spent together is written together."""


class Attempt:
    """Holds together the three parts of an attempt; each says itself who changes it.

    journal   what is known of the run: checkpoints, results, records, usage
    gate      the lease, and every write under it
    graph     which steps may begin, and the feeds of items between them
    """

    __slots__ = (
        "_is_saving",
        "claimed",
        "gate",
        "graph",
        "identity",
        "journal",
        "over",
        "pipeline",
        "plan",
        "runtime",
    )

    def __init__(
        self, claimed: Claimed, pipeline: Pipeline[Any], plan: Plan, lease: Lease, runtime: Runtime
    ) -> None:
        self.claimed = claimed
        self.pipeline = pipeline
        self.plan = plan
        self.runtime = runtime
        self.journal = Journal()
        self.gate = Gate(lease, runtime, self.journal, pipeline.max_validation_failures)
        self.graph = Graph(plan)
        self.identity: dict[str, Any] | None = None
        """What log lines call the run besides its id, once it is known."""
        self.over = False
        """Set by `Execution` when nothing is executed any more."""
        self._is_saving = False

    def save_spending(self) -> None:
        """Make what was just spent durable, without waiting for the next progress: the budget of
        the run counts it also if this worker dies."""
        if not self._is_saving:
            self._is_saving = True
            self.runtime.committer.loop.call_later(SAVED_WITHIN, self._save_progress)

    def _save_progress(self) -> None:
        self._is_saving = False
        if self.over or not self.gate.lease.trusted:
            return
        try:
            progress = self.journal.progress_text()
        except Exception:  # a value of the user's that can't be encoded: `ProgressWriter` says so
            return
        self.gate.show_progress(progress)

    def folder(self, step: str) -> str:
        """Where this attempt's blobs of a step go: nobody else writes there."""
        return f"{path_part(self.claimed.tenant)}/{self.claimed.run}/{step}/{self.gate.epoch}"
