"""What a job worker on PostgreSQL and Pub/Sub told other systems: a result message for every job,
and a dead letter for every one that failed.

    HOLDFAST_PROJECTIONS=job_results,job_dead_letters,job_log

The topics are the settings `jobs.results_topic` and `jobs.dead_letter_topic`; in code they are
given: `Holdfast(…, projections=[job_results("my-results")])`. A job's id is the run's key, or the
run's id where it has none."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from holdfast.model.event import EventType
from holdfast.model.projection import CommittedEvent, MessageProjection, Outgoing
from holdfast.model.run import RunState

log = logging.getLogger("holdfast.jobs")

STATUS = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "processing",
    RunState.PAUSED: "processing",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}
ENDS = frozenset({EventType.COMPLETED, EventType.FAILED})
BURIED = frozenset({EventType.FAILED, EventType.MESSAGE_DEAD_LETTERED})
OWN_DEAD_LETTERS = "projection:"
"""What the source of dead letters begins with that projections left."""

Topic = str | Callable[[], str]


def job_results(topic: Topic) -> MessageProjection:
    """`{job_id, status, output, error, execution_time_ms}` for every job that has ended, ordered by
    job."""

    def results(event: CommittedEvent) -> Outgoing:
        name = _named(topic)
        body = {
            "job_id": event.subject,
            "status": STATUS[RunState(event.after or "")],
            "output": event.result,
            "error": _error(event).get("message"),
            "execution_time_ms": event.data.get("execution_time_ms"),
        }
        published = partial(log.info, "Result published to %s", name)
        return Outgoing(name, body, ordering_key=event.subject, on_published=published)

    return MessageProjection(name="job_results", function=results, events=ENDS)


def job_dead_letters(topic: Topic) -> MessageProjection:
    """`{job_id, error, traceback, timestamp}` for every job that failed for good, and for every
    message that could not become one. The dead letter itself, with the original bytes, is in the
    store."""

    def dead_letters(event: CommittedEvent) -> Outgoing | None:
        if str(event.data.get("source", "")).startswith(OWN_DEAD_LETTERS):
            return None
        error = _error(event)
        job = event.subject if event.type == EventType.FAILED else _job_in(event.body)
        body = {
            "job_id": job,
            "error": error.get("message") or event.data.get("reason"),
            "traceback": error.get("traceback"),
            "timestamp": event.time.isoformat(),
        }
        published = partial(log.warning, "Message published to DLQ")
        key = job or event.run
        return Outgoing(_named(topic), body, ordering_key=key, on_published=published)

    return MessageProjection(name="job_dead_letters", function=dead_letters, events=BURIED)


def _error(event: CommittedEvent) -> dict[str, Any]:
    return event.data.get("error") or {}


def _job_in(body: bytes | None) -> str | None:
    """The id in a message that could not become a job, if it has one."""
    try:
        job = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return None
    job_id = job.get("job_id") if isinstance(job, dict) else None
    return job_id if isinstance(job_id, str) else None


def _log_event(event: CommittedEvent) -> None:
    """The lines that people of the job worker look for. They are written after the fact, and once
    more if the process dies in between."""
    job = event.subject
    if event.type == EventType.STARTED:
        log.info("Started processing job %s", job)
    elif event.type == EventType.COMPLETED:
        log.info("Pipeline executed in %sms", event.data.get("execution_time_ms"))
    elif event.type == EventType.FAILED:
        log.error("Error processing job %s: %s", job, _error(event).get("message"))
    elif event.type == EventType.RETRYING:
        log.warning("Message nacked for retry (attempt %s)", event.data.get("attempt"))
    before, after = (STATUS[RunState(s)] if s else None for s in (event.before, event.after))
    if before is not None and after is not None and before != after:
        log.info("Job %s status: %s → %s", job, before.upper(), after.upper())


def _named(topic: Topic) -> str:
    return topic if isinstance(topic, str) else topic()


@cache
def _settings() -> Any:
    from holdfast.settings import load

    return load().settings.jobs


RESULTS = job_results(lambda: _settings().results_topic)
DEAD_LETTERS = job_dead_letters(lambda: _settings().dead_letter_topic)
LOG = MessageProjection(name="job_log", function=_log_event, history=False)
