"""What every part of the engine works with, wired once per app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.engine.committer import Committer
from holdfast.engine.deadlines import Deadlines
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.local_workers import LocalWorkers
from holdfast.engine.payloads import Payloads
from holdfast.engine.waiters import Waiters
from holdfast.model.clock import Clock
from holdfast.model.lease import LeaseTimes
from holdfast.ports.blobs import BlobStore
from holdfast.ports.records import Records
from holdfast.ports.store import Store

OnExecute = Callable[[str, str, str], None]
"""Called with (run, step, key) whenever a step or item is really executed."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The collaborators of one app. None of them is exchanged after it was made."""

    store: Store
    records: Records
    committer: Committer
    payloads: Payloads
    keeper: LeaseKeeper
    clock: Clock
    times: LeaseTimes
    deadlines: Deadlines
    local_workers: LocalWorkers
    waiters: Waiters
    provided: Mapping[type[Any], Any]
    """What steps get by `ctx.use`."""
    on_execute: OnExecute | None


def make_runtime(
    store: Store,
    records: Records,
    blobs: BlobStore | None,
    clock: Clock,
    times: LeaseTimes,
    *,
    threaded: bool,
    provided: Mapping[type[Any], Any],
    on_execute: OnExecute | None = None,
) -> Runtime:
    local_workers = LocalWorkers()
    return Runtime(
        store,
        records,
        Committer(store),
        Payloads(blobs),
        LeaseKeeper(store, clock, times, threaded=threaded),
        clock,
        times,
        Deadlines(),
        local_workers,
        Waiters(store, local_workers),
        provided,
        on_execute,
    )
