"""What leaves as messages: the hand-over from the first stage to the second, and the domain events.

    HOLDFAST_PROJECTIONS=transcription_events

Both are derived from committed events: the hand-over leaves if and only if the first stage has
succeeded, with the same id and the same bytes however often it is sent, and the second stage makes
one run of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from holdfast.apps.transcription.job_status import (
    FIRST,
    SECOND,
    job_id,
    status_of,
    transcript_key,
)
from holdfast.model.cloudevent import to_attributes
from holdfast.model.event import EventType
from holdfast.model.projection import CommittedEvent, MessageProjection, Outgoing

WORKER_TYPE = "worker-type"
DEFAULT_WORK = "work"


@cache
def _settings() -> Any:
    from holdfast.settings import load

    return load().settings


def hand_over(event: CommittedEvent) -> Outgoing:
    """The enriched job, for the second stage."""
    topic = _settings().pubsub.work_topic or DEFAULT_WORK
    return Outgoing(topic, event.result, {**event.attributes, WORKER_TYPE: SECOND}, _job(event))


HAND_OVER = MessageProjection(
    name="transcription_hand_over",
    function=hand_over,
    pipeline=FIRST,
    events=frozenset({EventType.COMPLETED}),
    quiet=True,  # every worker knows this pipeline, and without a bus there is no second stage
)


def domain_events(event: CommittedEvent) -> Iterator[Outgoing]:
    if event.pipeline not in (FIRST, SECOND):
        return
    topic = _settings().jobs.events_topic
    for kind, body in events_of(event):
        attributes = to_attributes(event, "local")
        attributes |= {"ce-id": f"{event.id}/{kind}", "event-type": kind}
        yield Outgoing(topic, body, attributes, _job(event))


EVENTS = MessageProjection(name="transcription_events", function=domain_events)


def events_of(event: CommittedEvent) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kind and body of each domain event."""
    common = {"jobId": _job(event), "requestId": _request(event)}
    at = {"occurredAt": event.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    before = status_of(event.pipeline, event.before)
    after = status_of(event.pipeline, event.after)
    if event.type == EventType.QUEUED and event.pipeline == FIRST:
        yield "JobQueued", {"job": event.input, **common, **at}
    elif before and after and before != after:
        yield "JobStatusChanged", {**common, "from": before, "to": after, **at}
    if event.type == EventType.FAILED:
        error = (event.data.get("error") or {}).get("message")
        yield "JobFailed", {**common, "error": error, "attempts": event.data.get("attempt"), **at}
    if event.type == EventType.COMPLETED and event.pipeline == SECOND:
        id = event.result["id"]
        transcript = {"id": id, "location": transcript_key(id)}
        yield "TranscriptComplete", {**common, "transcript": transcript, **at}


def _job(event: CommittedEvent) -> str:
    return job_id(event.input, event.subject)


def _request(event: CommittedEvent) -> str | None:
    return (event.input or {}).get("requestId") or event.labels.get("requestId")
