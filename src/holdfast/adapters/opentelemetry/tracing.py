"""`Tracer` by the API of OpenTelemetry, and a provider that exports as the settings say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from holdfast.errors import ConfigurationError
from holdfast.model.secrecy import masked
from holdfast.model.trace_context import TraceContext, entered
from holdfast.model.version import VERSION
from holdfast.ports.tracing import Attributes, Kind

EXPORTERS = "opentelemetry_traces_exporter"
OTLP = ("otlp", "otlp_proto_http", "otlp_proto_grpc")
"""Names of the exporter in the order in which they are looked for, if the settings say `otlp`."""
MAX_MESSAGE = 500

_KINDS = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}


class OpenTelemetryTracer:
    """`provider` is whose spans they are: by default the one that is installed for the process."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("holdfast", VERSION, tracer_provider=provider)

    @contextmanager
    def span(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        origin: TraceContext | None = None,
        is_child: bool = False,
        is_root: bool = False,
    ) -> Iterator[OpenTelemetrySpan]:
        cause = _span_context(origin) if origin else None
        started = self._tracer.start_as_current_span(
            name,
            context=_parent(cause if is_child else None, is_root),
            kind=_KINDS[kind],
            attributes=_present(attributes),
            links=[Link(cause)] if cause and not is_child else None,
            record_exception=False,
            set_status_on_exception=False,
        )
        with started as span, entered(_context_of(span)):
            own = OpenTelemetrySpan(span)
            try:
                yield own
            except BaseException as error:
                own.fail(type(error).__name__, str(error))
                raise


class OpenTelemetrySpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(_present(attributes))

    def fail(self, kind: str, message: str = "") -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, masked(message)[:MAX_MESSAGE]))


def install_provider(exporter: str, service: str) -> TracerProvider:
    """A provider for this process, which exports in a thread of its own. Raises ConfigurationError
    if there is no such exporter."""
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(_exporter(exporter)))
    trace.set_tracer_provider(provider)
    return provider


def _exporter(name: str) -> Any:
    exporters = {entry.name: entry for entry in entry_points(group=EXPORTERS)}
    names = OTLP if name == "otlp" else (name,)
    entry = next((exporters[name] for name in names if name in exporters), None)
    if entry is None:
        raise ConfigurationError(
            f"traces.exporter = {name!r} is not installed (known: {', '.join(sorted(exporters))}): "
            "pip install opentelemetry-exporter-otlp"
        )
    return entry.load()()


def _parent(cause: SpanContext | None, is_root: bool) -> Context | None:
    if cause is not None:
        return trace.set_span_in_context(NonRecordingSpan(cause), Context())
    return Context() if is_root else None


def _span_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT),
    )


def _context_of(span: trace.Span) -> TraceContext | None:
    context = span.get_span_context()
    if not context.is_valid:
        return None
    ids = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    return TraceContext(*ids, context.trace_flags.sampled, context.trace_state.to_header())


def _present(attributes: Attributes) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
