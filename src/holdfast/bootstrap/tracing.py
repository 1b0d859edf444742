"""The tracer, if the settings want one and its extra is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec

from holdfast.errors import ConfigurationError
from holdfast.ports.tracing import Tracer
from holdfast.settings import Settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def make_tracer(settings: Settings) -> Tracer | None:
    """None unless the settings name an exporter or an endpoint. Raises ConfigurationError with what
    to install, if something is missing."""
    traces = settings.traces
    exporter = traces.exporter or ("otlp" if traces.endpoint else "none")
    if exporter == "none":
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise ConfigurationError("traces need OpenTelemetry: pip install 'holdfast[otel]'")
    from holdfast.adapters.opentelemetry.tracing import OpenTelemetryTracer, install_provider

    if traces.endpoint:
        os.environ.setdefault(ENDPOINT, traces.endpoint)  # that is where exporters look
    return OpenTelemetryTracer(install_provider(exporter, traces.service))
