"""The domain events of a two-stage ingestion: JobQueued, JobStatusChanged and JobFailed, one topic
for all, ordered by job.

    HOLDFAST_PROJECTIONS=job_events

The topic is the setting `jobs.events_topic`. `event-type` in the attributes names the kind of an
event; beside it stand those of a CloudEvent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from holdfast.apps.compat.jobs import Topic
from holdfast.model.cloudevent import to_attributes
from holdfast.model.event import EventType
from holdfast.model.projection import CommittedEvent, MessageProjection, Outgoing
from holdfast.model.run import RunState

STATUS = {
    RunState.QUEUED: "Queued",
    RunState.RUNNING: "Processing",
    RunState.PAUSED: "Processing",
    RunState.SUCCEEDED: "Completed",
    RunState.FAILED: "Failed",
    RunState.CANCELLED: "Cancelled",
}
REQUEST = ("requestId", "request_id")
"""Labels and attributes that say which request a job belongs to."""


def job_events(topic: Topic) -> MessageProjection:
    def events(event: CommittedEvent) -> Iterator[Outgoing]:
        name = topic if isinstance(topic, str) else topic()
        for kind, body in _events(event):
            attributes = to_attributes(event, "local")
            attributes |= {"ce-id": f"{event.id}/{kind}", "event-type": kind}
            yield Outgoing(name, body, attributes, event.subject)

    return MessageProjection(name="job_events", function=events)


def _events(event: CommittedEvent) -> Iterator[tuple[str, dict[str, Any]]]:
    common = {"jobId": event.subject, "requestId": _request(event)}
    at = {"occurredAt": event.time.isoformat().replace("+00:00", "Z")}
    before, after = (STATUS[RunState(state)] if state else None for state in _states(event))
    if event.type == EventType.QUEUED:
        yield "JobQueued", {"job": {"id": event.subject, "input": event.input}, **common, **at}
    elif before and after and before != after:
        yield "JobStatusChanged", {**common, "from": before, "to": after, **at}
    if event.type == EventType.FAILED:
        error = (event.data.get("error") or {}).get("message")
        yield "JobFailed", {**common, "error": error, "attempts": event.data.get("attempt"), **at}


def _states(event: CommittedEvent) -> tuple[str | None, str | None]:
    return event.before, event.after


def _request(event: CommittedEvent) -> str | None:
    values = [event.labels.get(name) or event.attributes.get(name) for name in REQUEST]
    return next((name for name in values if name), None)


@cache
def _topic() -> str:
    from holdfast.settings import load

    return load().settings.jobs.events_topic


EVENTS = job_events(_topic)
