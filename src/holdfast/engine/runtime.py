"""What every part of the engine works with, wired once per app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.engine.admission import Admission
from holdfast.engine.claim_check import ClaimChecks
from holdfast.engine.committer import Committer
from holdfast.engine.deadlines import Deadlines
from holdfast.engine.job_secrets import JobSecrets
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.local_workers import LocalWorkers
from holdfast.engine.metering import Meter
from holdfast.engine.payloads import Payloads
from holdfast.engine.supervision import Supervisor
from holdfast.engine.tenants import TenantDirectory
from holdfast.engine.waiters import Waiters
from holdfast.model.clock import Clock
from holdfast.model.lease import LeaseTimes
from holdfast.ports.records import Records
from holdfast.ports.store import Store
from holdfast.ports.tracing import Tracer

OnExecute = Callable[[str, str, str], None]
"""Called with (run, step, key) whenever a step or item is really executed."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The collaborators of one app. None of them is exchanged after it was made."""

    store: Store
    records: Records
    tenants: TenantDirectory
    admission: Admission
    committer: Committer
    payloads: Payloads
    claim_checks: ClaimChecks
    keeper: LeaseKeeper
    clock: Clock
    times: LeaseTimes
    deadlines: Deadlines
    local_workers: LocalWorkers
    waiters: Waiters
    job_secrets: JobSecrets
    supervisor: Supervisor
    meter: Meter | None
    """Who counts what happens here, if anybody does."""
    tracer: Tracer | None
    """Who records spans, if anybody does."""
    is_parent_from_message: bool
    """Whether the span of a message is below that of its producer, rather than linked to it."""
    bus_system: str
    """What traces call the bus."""
    provided: Mapping[type[Any], Any]
    """What steps get by `ctx.use`."""
    on_execute: OnExecute | None
