"""The spans of the engine. Without a tracer none is made, and a run costs no question more.

process TOPIC    a message that was received: linked to its producer
run PIPELINE     one attempt: a trace of its own, linked to what caused the run
step NAME        below its attempt
send TOPIC       a message that leaves, linked to what caused its run"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.model.commands import Settle
from holdfast.model.trace_context import TraceContext, current, entered, of_attributes
from holdfast.ports.bus import Message
from holdfast.ports.tracing import Span, Tracer

if TYPE_CHECKING:
    from holdfast.engine.attempt import Attempt
    from holdfast.engine.runtime import Runtime


class NoSpan:
    def set(self, attributes: object) -> None: ...

    def fail(self, kind: str, message: str = "") -> None: ...


NO_SPAN = NoSpan()


@contextmanager
def message_span(runtime: Runtime, topic: str, message: Message, attempt: int) -> Iterator[Span]:
    """Around the receiving of a message. Runs that it makes know where it came from."""
    origin, tracer = of_attributes(message.attributes), runtime.tracer
    if tracer is None:
        with entered(origin):
            yield NO_SPAN
        return
    attributes = {
        **_messaging(runtime, topic, "process"),
        "messaging.message.id": message.id[:200],
        "messaging.message.body.size": len(message.body),
        "messaging.gcp_pubsub.message.delivery_attempt": attempt,
        "cloudevents.event_id": message.attributes.get("ce-id"),
        "cloudevents.event_type": message.attributes.get("ce-type"),
    }
    is_child = runtime.is_parent_from_message
    with tracer.span(
        f"process {topic}", "consumer", attributes, origin=origin, is_child=is_child, is_root=True
    ) as span:
        yield span


@contextmanager
def send_span(runtime: Runtime, topic: str, message: Message) -> Iterator[None]:
    if runtime.tracer is None:
        yield
        return
    attributes = {
        **_messaging(runtime, topic, "send"),
        "messaging.message.id": message.id,
        "messaging.message.body.size": len(message.body),
    }
    origin = of_attributes(message.attributes)
    with runtime.tracer.span(f"send {topic}", "producer", attributes, origin=origin, is_root=True):
        yield


@contextmanager
def run_span(tracer: Tracer, attempt: Attempt, origin: TraceContext | None) -> Iterator[Span]:
    claimed = attempt.claimed
    attributes = {
        "holdfast.run.id": claimed.run,
        "holdfast.pipeline": claimed.pipeline,
        "holdfast.tenant": claimed.tenant,
        "holdfast.lane": claimed.lane,
        "holdfast.attempt": claimed.attempt,
    }
    with tracer.span(
        f"run {claimed.pipeline}", "internal", attributes, origin=origin, is_root=True
    ) as span:
        yield span


def note_outcome(span: Span, settle: Settle | None) -> None:
    if settle is None:
        span.fail("LeaseLost")
        return
    span.set({"holdfast.outcome": settle.outcome})
    if settle.outcome == "failed":
        span.fail("RunFailed", settle.error or "")


async def origin_of(runtime: Runtime, run: str) -> TraceContext | None:
    """What caused a run. That it can't be read is no reason not to execute it."""
    try:
        stored = await runtime.store.run(run)
    except HoldfastError:
        return None
    return of_attributes(stored.attributes) if stored else None


@contextmanager
def step_span(attempt: Attempt, step: str) -> Iterator[Span]:
    tracer = attempt.runtime.tracer
    assert tracer is not None
    attributes = {
        "holdfast.run.id": attempt.claimed.run,
        "holdfast.pipeline": attempt.claimed.pipeline,
        "holdfast.tenant": attempt.claimed.tenant,
        "holdfast.step": step,
        "holdfast.attempt": attempt.claimed.attempt,
    }
    with tracer.span(f"step {step}", "internal", attributes) as span:
        yield span


def caused_by(attributes: dict[str, str]) -> dict[str, str]:
    """The attributes of a run that is submitted now, with the trace context of whoever submits it,
    unless its message brought one."""
    context = current()
    if context is None or of_attributes(attributes) is not None:
        return attributes
    return {**attributes, **context.attributes}


def _messaging(runtime: Runtime, topic: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": runtime.bus_system,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
