"""`Metrics` in a registry of prometheus_client, and the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    start_http_server,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily

from holdfast.model.metrics import BY_NAME, METRICS, Metric
from holdfast.ports.metrics import Labels, Sample

CONTENT_TYPE = CONTENT_TYPE_LATEST


class PrometheusMetrics:
    """Without a registry it makes one of its own, with the figures of the process and of Python."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
        self.registry = registry
        own = [metric for metric in METRICS if metric.scope == "process"]
        self._metrics = {metric.name: _make_metric(metric, registry) for metric in own}

    def count(self, name: str, labels: Labels, amount: float = 1.0) -> None:
        self._with(name, labels).inc(amount)

    def observe(self, name: str, seconds: float, labels: Labels) -> None:
        self._with(name, labels).observe(seconds)

    def set(self, name: str, value: float, labels: Labels) -> None:
        self._with(name, labels).set(value)

    def exposition(self, cluster: Iterable[Sample] = ()) -> bytes:
        """The metrics of this process, and those of the cluster if they are given."""
        registry = CollectorRegistry()
        registry.register(_ClusterCollector(list(cluster)))
        return generate_latest(self.registry) + generate_latest(registry)

    def serve(self, host: str, port: int) -> str:
        """Answer /metrics in a thread that ends with the process. Where it listens."""
        server, _ = start_http_server(port, host, registry=self.registry)
        host_in_url = f"[{host}]" if ":" in host else host
        return f"http://{host_in_url}:{server.server_port}"

    def _with(self, name: str, labels: Labels) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels)


def _make_metric(metric: Metric, registry: CollectorRegistry) -> Any:
    settings = (metric.name, metric.help, metric.labels)
    if metric.kind == "counter":
        return Counter(*settings, registry=registry)
    if metric.kind == "gauge":
        return Gauge(*settings, registry=registry)
    return Histogram(*settings, registry=registry, buckets=metric.buckets)


class _ClusterCollector:
    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for sample in self._samples:
            metric = BY_NAME[sample.name]
            if sample.name not in families:
                families[sample.name] = GaugeMetricFamily(
                    metric.name, metric.help, labels=metric.labels
                )
            values = [sample.labels[label] for label in metric.labels]
            families[sample.name].add_metric(values, sample.value)
        yield from families.values()
