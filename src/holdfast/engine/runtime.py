"""What every part of the engine works with, wired once per process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.engine.committer import Committer
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.payloads import Payloads
from holdfast.engine.waiters import Waiters
from holdfast.model.clock import Clock
from holdfast.model.lease import LeaseTimes
from holdfast.ports.store import Store


@dataclass(slots=True)
class Runtime:
    store: Store
    committer: Committer
    payloads: Payloads
    keeper: LeaseKeeper
    clock: Clock
    times: LeaseTimes
    waiters: Waiters = field(default_factory=Waiters)
    on_execute: Callable[[str, str, str], None] | None = None
    """Told (run, step, key) whenever a step or item is really executed: for tests that count."""
