"""Spans over messages, runs, steps and model calls; trace context in and out; nothing when
absent."""

import asyncio
import json
import logging
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from holdfast import Context, Holdfast, LanguageModel, Pipeline, Question
from holdfast.adapters.opentelemetry.tracing import OpenTelemetryTracer
from holdfast.bootstrap.tracing import make_tracer
from holdfast.cli.logs import JsonLines
from holdfast.errors import ConfigurationError
from holdfast.model.projection import Outgoing
from holdfast.model.trace_context import (
    TraceContext,
    current,
    entered,
    of_attributes,
    of_headers,
    parse,
)
from holdfast.ports.bus import Message
from holdfast.settings.values import Settings, Traces
from holdfast.testing.fakellm import FakeLLM, Fixed

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = PARENT.split("-")[1:3]


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OpenTelemetryTracer(provider)


def by_name(exporter):
    return {span.name: span for span in exporter.get_finished_spans()}


def trace_of(span):
    return f"{span.get_span_context().trace_id:032x}"


def links_of(span):
    return [
        (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in span.links
    ]


# --- trace context --------------------------------------------------------------------------------


def test_trace_context_is_read_in_the_order_of_trust():
    other = PARENT.replace("0af7", "1af7")
    assert of_attributes({"traceparent": PARENT, "ce-traceparent": other}).trace_id == TRACE
    assert of_attributes({"googclient_traceparent": PARENT}).span_id == SPAN
    assert of_attributes({"traceparent": "nonsense", "ce-traceparent": PARENT}).trace_id == TRACE
    assert of_attributes({"traceparent": PARENT, "tracestate": "a=1"}).attributes == {
        "traceparent": PARENT,
        "tracestate": "a=1",
    }
    google = of_headers({"x-cloud-trace-context": f"{TRACE}/1;o=1"})
    assert google == TraceContext(TRACE, "0000000000000001", True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        PARENT.upper(),
        PARENT + "0",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        "\0" * 55,
        "ff" + PARENT[2:],
    ],
)
def test_what_is_no_trace_context_is_none(text):
    assert parse(text) is None
    assert of_attributes({"traceparent": text}) is None


# --- spans ----------------------------------------------------------------------------------------


class Mood(BaseModel):
    mood: str


pipeline = Pipeline("orders", input=str, max_attempts=1)


@pipeline.step
async def ask(request: str, ctx: Context) -> str:
    if request == "bad":
        raise TypeError("password=hunter2")
    answer = await ctx.use(LanguageModel).ask(Question("How do they feel?", request), Mood, ctx)
    return answer.mood


@pipeline.publishes
def moods(event):
    if event.type == "run.completed":
        return Outgoing("moods", {"mood": event.result}, {})
    return None


def run_story(story, **options):
    async def whole():
        async with FakeLLM(Fixed(answer={"mood": "glad"})) as fake:
            llm = fake.address(input_price=1, output_price=1)
            app = Holdfast("memory:", [pipeline], llm=llm, bus="memory:", **options)
            async with app:
                await story(app)

    asyncio.run(whole())


async def received(app, topic):
    """The next message of a topic."""
    deliveries = app.bus.subscribe(topic, "test")
    await deliveries.begun()
    return deliveries


def test_a_message_its_run_its_step_and_its_model_call_are_spans(tracer, exporter):
    async def story(app):
        deliveries = await received(app, "moods")
        await app.receive("letters", pipeline)
        await app.bus.publish("letters", Message("m1", b'"hello"', {"traceparent": PARENT}))
        async for delivery in deliveries:
            await delivery.ack()
            # What leaves carries what the run was caused by: the same in every copy.
            assert delivery.message.attributes["traceparent"] == PARENT
            break

    run_story(story, tracer=tracer)
    spans = by_name(exporter)
    process, run, step = spans["process letters"], spans["run orders"], spans["step ask"]
    assert (process.kind, run.kind) == (SpanKind.CONSUMER, SpanKind.INTERNAL)
    assert links_of(process) == [(TRACE, SPAN)]
    assert links_of(run) == [(TRACE, SPAN)]
    assert run.parent is None
    assert step.parent.span_id == run.get_span_context().span_id
    assert process.attributes["messaging.message.id"] == "m1"
    assert run.attributes["holdfast.pipeline"] == "orders"
    assert run.attributes["holdfast.outcome"] == "succeeded"
    assert step.attributes["holdfast.step.reused"] is False
    [chat] = [span for span in exporter.get_finished_spans() if span.kind == SpanKind.CLIENT]
    assert chat.name.startswith("chat ")
    assert chat.parent.span_id == step.get_span_context().span_id
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.usage.input_tokens"] > 0
    assert chat.attributes["holdfast.cost.usd"] > 0
    assert "hello" not in str([span.attributes for span in exporter.get_finished_spans()])
    assert spans["send moods"].kind == SpanKind.PRODUCER


def test_the_span_of_a_message_may_be_below_its_producer(tracer, exporter):
    from dataclasses import replace

    async def story(app):
        runtime = replace(app.runtime, is_parent_from_message=True)
        from holdfast.engine.tracing import message_span

        with message_span(runtime, "letters", Message("m1", b"", {"traceparent": PARENT}), 1):
            assert current().trace_id == TRACE

    run_story(story, tracer=tracer)
    [process] = exporter.get_finished_spans()
    assert (trace_of(process), f"{process.parent.span_id:016x}") == (TRACE, SPAN)


def test_a_run_that_fails_is_an_error_without_secrets(tracer, exporter):
    async def story(app):
        run = await app.submit(pipeline, "bad")
        with pytest.raises(Exception, match="TypeError"):
            await run.result()

    run_story(story, tracer=tracer)
    spans = by_name(exporter)
    assert spans["run orders"].status.status_code == StatusCode.ERROR
    assert spans["step ask"].status.status_code == StatusCode.ERROR
    text = str([(span.status.description, dict(span.attributes)) for span in spans.values()])
    assert "hunter2" not in text


def test_trace_context_passes_through_without_any_tracer():
    async def story(app):
        deliveries = await received(app, "moods")
        with entered(parse(PARENT)):  # a request with this header
            run = await app.submit(pipeline, "hello")
        assert (await run.info()).attributes["traceparent"] == PARENT
        async for delivery in deliveries:
            await delivery.ack()
            assert delivery.message.attributes["traceparent"] == PARENT
            break

    run_story(story)


# --- settings, logs, cost -------------------------------------------------------------------------


def test_no_exporter_no_tracer_and_a_missing_one_says_what_to_install(monkeypatch):
    assert make_tracer(Settings()) is None
    assert make_tracer(Settings(traces=Traces(exporter="none", endpoint="http://x"))) is None
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with pytest.raises(ConfigurationError, match="pip install opentelemetry-exporter-otlp"):
        make_tracer(Settings(traces=Traces(exporter="jaeger")))


def test_nothing_is_imported_when_nobody_wants_traces():
    code = (
        "import sys, holdfast.app, holdfast.cli.worker, holdfast.bootstrap.tracing;"
        "print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout.strip() == "False"


def line(formatter):
    record = logging.LogRecord("holdfast", logging.WARNING, "", 0, "said", (), None)
    return json.loads(formatter.format(record))


@pytest.mark.parametrize("name", ["GOOGLE_CLOUD_PROJECT", "PUBSUB_PROJECT_ID"])
def test_log_lines_on_cloud_run_have_severity_and_trace(monkeypatch, name):
    monkeypatch.setenv("K_SERVICE", "worker")
    monkeypatch.setenv(name, "acme-prod")
    with entered(parse(PARENT)):
        entry = line(JsonLines())
    assert entry["severity"] == "WARNING"
    assert entry["logging.googleapis.com/trace"] == f"projects/acme-prod/traces/{TRACE}"
    assert entry["logging.googleapis.com/spanId"] == SPAN
    assert "logging.googleapis.com/trace" not in line(JsonLines())


def test_log_lines_elsewhere_have_the_ids(monkeypatch):
    monkeypatch.delenv("K_SERVICE", raising=False)
    with entered(parse(PARENT)):
        entry = line(JsonLines())
    assert (entry["trace_id"], entry["span_id"]) == (TRACE, SPAN)


@pytest.mark.parametrize(
    ("variable", "kind"),
    [("K_SERVICE", "JsonLines"), ("CLOUD_RUN_JOB", "JsonLines"), ("", "TextLines")],
)
def test_the_usual_format_is_json_on_cloud_run_and_text_elsewhere(monkeypatch, variable, kind):
    from holdfast.cli import logs

    for name in ("K_SERVICE", "CLOUD_RUN_JOB"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "x")
    assert type(logs._formatter("auto")).__name__ == kind
