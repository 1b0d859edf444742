"""The graph of a pipeline's steps: its shape, prepared once, and which steps of an attempt may
begin."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.engine.feed import Feed
from holdfast.model.pipeline import Pipeline


class Plan:
    """Counts and edges from which every attempt starts.

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


class Graph:
    """Which steps of one attempt may begin, and the feeds of items between them.

    `Execution` reports what starts and ends, and begins the steps that it returns. The worker
    drains it when it stops: then nothing further may begin. Steps and items put into the feeds and
    read from them."""

    __slots__ = ("_drained", "_draining", "_feeds", "_missing", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._missing = dict(plan.missing)
        self._feeds: dict[str, Feed] = {}
        self._draining = False
        self._drained: asyncio.Event | None = None

    @property
    def drained(self) -> asyncio.Event:
        """For whoever waits for a retry: the worker stops."""
        if self._drained is None:
            self._drained = asyncio.Event()
            if self._draining:
                self._drained.set()
        return self._drained

    def drain(self) -> None:
        """Let no further step begin; those under way may finish."""
        self._draining = True
        self.drained.set()

    def first(self) -> list[str]:
        return [] if self._draining else self._plan.first

    def start(self, step: str) -> list[str]:
        """A step starts. The steps that may begin because they stream its items."""
        followers = self._plan.after_start[step]
        if not followers:
            return followers
        self._feeds[step] = Feed(step)
        return self._made_ready(followers)

    def end(self, step: str) -> list[str]:
        """A step has a result. The steps that may begin because of it."""
        if (feed := self._feeds.get(step)) is not None:
            feed.close()
        return self._made_ready(self._plan.after_end[step])

    def feed(self, step: str) -> Feed | None:
        """Where the items of a step go to; None when nobody streams them."""
        return self._feeds.get(step)

    def _made_ready(self, steps: list[str]) -> list[str]:
        ready: list[str] = []
        for step in steps:
            self._missing[step] -= 1
            if self._missing[step] == 0:
                ready.append(step)
        return [] if self._draining else ready
