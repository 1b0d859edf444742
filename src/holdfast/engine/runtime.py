"""What every part of the engine works with, wired once per process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine.committer import Committer
from holdfast.engine.deadlines import Deadlines
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.payloads import Payloads
from holdfast.engine.waiters import Waiters
from holdfast.model.clock import Clock
from holdfast.model.lease import LeaseTimes
from holdfast.ports.records import Records
from holdfast.ports.store import Store


@dataclass(slots=True)
class Runtime:
    store: Store
    records: Records
    committer: Committer
    payloads: Payloads
    keeper: LeaseKeeper
    clock: Clock
    times: LeaseTimes
    waiters: Waiters = field(default_factory=Waiters)
    expect_work: Callable[[str], None] = lambda lane: None
    """Told the lane of a run that is about to be submitted: a worker beside it claims in the same
    transaction."""
    provided: Mapping[type[Any], Any] = field(default_factory=dict)
    """What steps find under a type with `ctx.use`."""
    _deadlines: Deadlines | None = None
    on_execute: Callable[[str, str, str], None] | None = None
    """Told (run, step, key) whenever a step or item is really executed: for tests that count."""

    @property
    def deadlines(self) -> Deadlines:
        """Of the loop that the engine runs in: not known before it runs, another one when an app is
        opened again."""
        if self._deadlines is None or self._deadlines.loop.is_closed():
            self._deadlines = Deadlines()
        return self._deadlines
