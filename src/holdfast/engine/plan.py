"""The shape of a pipeline, prepared once: who waits for whom."""

from __future__ import annotations

from typing import Any

from holdfast.model.pipeline import Pipeline


class Plan:
    """Counts and edges from which every execution starts.

    A step waits for its needs to end. For a step whose items it streams it only waits for the
    start."""

    def __init__(self, pipeline: Pipeline[Any]) -> None:
        self.result = pipeline.result_step.name
        self.missing = {
            name: len(step.waits_for) + len(step.streams) for name, step in pipeline.steps.items()
        }
        self.after_end: dict[str, list[str]] = {name: [] for name in pipeline.steps}
        self.after_start: dict[str, list[str]] = {name: [] for name in pipeline.steps}
        for name, step in pipeline.steps.items():
            for need in step.waits_for:
                self.after_end[need].append(name)
            for source in step.streams:
                self.after_start[source].append(name)
        self.first = [name for name, count in self.missing.items() if count == 0]
        followers = [self.first, *self.after_end.values()]
        self.is_chain = all(len(names) <= 1 for names in followers) and not any(
            self.after_start.values()
        )
        """One step at a time: nothing ever runs beside it."""
