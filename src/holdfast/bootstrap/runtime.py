"""What an app works with, made from its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.adapters.records import StoreRecords
from holdfast.bootstrap.language_models import language_model_providers
from holdfast.bootstrap.options import Options
from holdfast.bootstrap.providers import Providers
from holdfast.engine.admission import Admission
from holdfast.engine.claim_check import ClaimChecks
from holdfast.engine.committer import Committer
from holdfast.engine.deadlines import Deadlines
from holdfast.engine.job_secrets import JobSecrets
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.local_workers import LocalWorkers
from holdfast.engine.metering import Meter
from holdfast.engine.payloads import Payloads
from holdfast.engine.runtime import Runtime
from holdfast.engine.supervision import Supervisor
from holdfast.engine.tenants import TenantDirectory
from holdfast.engine.waiters import Waiters
from holdfast.ports.blobs import BlobStore
from holdfast.ports.store import Store


def make_providers(
    options: Options, store: Store, blobs: BlobStore | None, meter: Meter | None
) -> Providers:
    """What steps get by `ctx.use`."""
    models = language_model_providers(options, blobs, StoreRecords(store), meter)
    return Providers(options.provide, models)


def make_runtime(
    options: Options,
    store: Store,
    blobs: BlobStore | None,
    meter: Meter | None,
    provided: Mapping[type[Any], Any],
) -> Runtime:
    records, clock, times = StoreRecords(store), options.clock, options.lease
    tenants = TenantDirectory(records, clock)
    local_workers = LocalWorkers()
    return Runtime(
        store=store,
        records=records,
        tenants=tenants,
        admission=Admission(store, records, tenants),
        committer=Committer(store),
        payloads=Payloads(blobs),
        claim_checks=ClaimChecks(blobs, options.blobs_url or "blobs:"),
        keeper=LeaseKeeper(store, clock, times, threaded=options.threads),
        clock=clock,
        times=times,
        deadlines=Deadlines(),
        local_workers=local_workers,
        waiters=Waiters(store, local_workers),
        job_secrets=JobSecrets(),
        supervisor=Supervisor(),
        meter=meter,
        tracer=options.tracer,
        is_parent_from_message=options.parent_from_message,
        bus_system=options.bus_system,
        provided=provided,
        on_execute=options.on_execute,
    )
