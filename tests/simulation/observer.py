"""What a story watches while it goes on, besides durable results: who starts something although the
run is no longer theirs, or before its inputs are durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters.memory.store import MemoryStore
from holdfast.model.commands import Cancel, Claim, Command, PauseRun
from holdfast.model.machine.facts import lasts
from holdfast.model.run import RunState
from holdfast.ports.store import Store
from holdfast.testing.invariants import Observer
from holdfast.testing.world import World

from .work import NEEDS


class StoryObserver(Observer):
    """`notice` is how long after a cancel or a pause something may still start, in seconds.
    `retries_ask`: no retry starts later than one at all. A retry asks the store first, and only in
    a world without accidents nothing comes between the question and the start."""

    def __init__(self, world: World, store: Store, notice: float, *, retries_ask: bool) -> None:
        super().__init__()
        self._world = world
        self._store = store
        self._notice = notice
        self._retries_ask = retries_ask
        self._stopped: dict[str, float] = {}
        self._tried: dict[str, set[tuple[str, str]]] = {}
        """By run: what its newest attempt has started."""

    def observe(self, commands: Sequence[Command[Any]], replies: Sequence[Any]) -> None:
        super().observe(commands, replies)
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(command, Cancel | PauseRun) and reply is None:
                self._stopped.setdefault(command.run, self._world.clock.monotonic())
            elif isinstance(command, Claim):
                for claimed in reply:
                    self._stopped.pop(claimed.run, None)
                    self._tried[claimed.run] = set()

    def on_execute(self, run: str, step: str, key: str) -> None:
        super().on_execute(run, step, key)
        call = f"{step}[{key}] of run {run}"
        self._check_stopped(run, step, key, call)
        self._check_lease(run, call)
        for need in NEEDS.get(step, ()) if not key else ():
            if (run, need, "") not in self.durable:
                self.violations.append(f"I3: {call} started before {need} was durable")

    def _check_stopped(self, run: str, step: str, key: str, call: str) -> None:
        tried = self._tried.setdefault(run, set())
        is_retry = (step, key) in tried
        tried.add((step, key))
        if run not in self._stopped:
            return
        late = self._world.clock.monotonic() - self._stopped[run]
        if late > self._notice:
            self.violations.append(f"L5: {call} started {late:g} s after the run was stopped")
        elif is_retry and self._retries_ask and late:  # at once: they were asked in one batch
            self.violations.append(f"I15: {call} was tried again after the run was stopped")

    def _check_lease(self, run: str, call: str) -> None:
        """Only the store in memory shows leases without waiting."""
        if not isinstance(self._store, MemoryStore):
            return
        facts, now = self._store._tables.run(run), self._store._now()
        if facts is None or facts.state is RunState.QUEUED:
            self.violations.append(f"I1: {call} started while nobody had the run")
        elif facts.state is RunState.RUNNING and not lasts(facts.lease_until, facts.lease_ttl, now):
            self.violations.append(f"I1: {call} started although the lease had ended")
