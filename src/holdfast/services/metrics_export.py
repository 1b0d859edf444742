"""What Prometheus is told: the figures of this process, and those of the cluster from one process.

Who exports the cluster's figures holds a record that ends by itself. Each time that its metrics are
read it begins anew; when nobody reads them any more, the next process that is read takes over. If
the store is away, the figures of the cluster are left out, and those of the process are told."""

from __future__ import annotations

import logging

from holdfast.engine.metering import Meter
from holdfast.engine.runtime import Runtime
from holdfast.errors import HoldfastError
from holdfast.model.ids import new_token
from holdfast.model.replies import Stored
from holdfast.ports.metrics import Sample
from holdfast.services.cluster_metrics import ClusterSettings, read_figures, samples

log = logging.getLogger("holdfast.metrics")

EXPORTER = "metrics-exporter"
HELD = 90.0
"""Seconds after which another process exports the cluster's figures: longer than Prometheus waits
between two readings."""
FRESH = 5.0
"""Seconds for which figures are used again: several may read."""


class MetricsExport:
    def __init__(
        self, runtime: Runtime, meter: Meter, settings: ClusterSettings | None = None
    ) -> None:
        self._runtime = runtime
        self._meter = meter
        self._settings = settings or ClusterSettings()
        self._token = new_token()
        self._samples: list[Sample] = []
        self._read_at: float | None = None

    async def text(self, *, cluster: bool = True) -> bytes:
        return self._meter.metrics.exposition(await self._cluster() if cluster else ())

    async def _cluster(self) -> list[Sample]:
        now = self._runtime.clock.monotonic()
        if self._read_at is not None and now - self._read_at < FRESH:
            return self._samples
        try:
            self._samples = await self._read() if await self._exports() else []
            self._read_at = now
        except HoldfastError as error:
            log.warning("the figures of the cluster can't be read: %s", error)
            return []
        return self._samples

    async def _read(self) -> list[Sample]:
        figures = await read_figures(self._runtime.store)
        return list(samples(figures, self._meter.tenants, self._settings))

    async def _exports(self) -> bool:
        """Whether this process is the one."""
        records = self._runtime.records
        known = (await records.get(EXPORTER)).records
        if known and known[0].value != self._token:
            return False
        version = known[0].version if known else None
        reply = await records.put(EXPORTER, self._token, expected=version, ttl=HELD)
        return isinstance(reply, Stored)
