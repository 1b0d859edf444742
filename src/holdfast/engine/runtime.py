"""What every part of the engine works with, wired once per process."""

from __future__ import annotations

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
