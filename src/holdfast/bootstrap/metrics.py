"""The registry of metrics, if its extra is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from holdfast.engine.metering import Meter, TenantLabels
from holdfast.errors import ConfigurationError
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.adapters.prometheus.metrics import PrometheusMetrics

MODULE = "prometheus_client"
_made: list[PrometheusMetrics] = []


def make_metrics() -> PrometheusMetrics | None:
    """The registry of this process: one, however often it is asked for. None if prometheus-client
    is not installed."""
    if find_spec(MODULE) is None:
        return None
    if not _made:
        from holdfast.adapters.prometheus.metrics import PrometheusMetrics

        _made.append(PrometheusMetrics())
    return _made[0]


def make_meter(settings: Settings) -> Meter | None:
    """For who counts without an app: the pipeline locks."""
    metrics = make_metrics()
    if metrics is None:
        return None
    return Meter(metrics, TenantLabels(settings.metrics.tenant_label))


def require_metrics() -> PrometheusMetrics:
    """Raise ConfigurationError with what to install, if it is missing."""
    if (metrics := make_metrics()) is None:
        raise ConfigurationError(
            "metrics need prometheus-client: pip install 'holdfast[metrics]' (or [serve])"
        )
    return metrics
