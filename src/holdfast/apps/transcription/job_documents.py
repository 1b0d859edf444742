"""What other systems find in the bucket: the job under its status, its transcript, its events, and
its idempotency key.

    STORAGE_BUCKET_NAME=transcripts HOLDFAST_PROJECTIONS=transcription_jobs

Objects are written in an order in which whoever reads `jobs/Completed/…` finds the transcript, and
a job is under its new status before it leaves the old one. `holdfast projections rebuild
transcription_jobs` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.apps.transcription.job_status import (
    FIRST,
    SECOND,
    STATUSES,
    job_id,
    job_key,
    status_of,
    transcript_key,
)
from holdfast.apps.transcription.messages import events_of
from holdfast.model.event import Event
from holdfast.model.projection import (
    ArtifactBody,
    CommittedEvent,
    Document,
    DocumentProjection,
    Removal,
    RunSnapshot,
)
from holdfast.model.run import RunState

IDEMPOTENCY_LIFE = 86_400.0
"""Seconds for which a key of a caller is remembered."""
EVENT_NAMES = {"JobQueued": "queued", "JobFailed": "error", "TranscriptComplete": "transcript"}
"""Changes of the status are named after the new one."""


def transcription_jobs(to: Any = None) -> DocumentProjection:
    """`to` is the URL of the bucket, or a function that gives it; None: where the documents go."""
    return DocumentProjection(
        name="transcription_jobs", function=documents, on_progress=False, to=to
    )


def documents(snapshot: RunSnapshot) -> Iterator[Document | Removal]:
    run = snapshot.run
    if run.pipeline not in (FIRST, SECOND):
        return
    id = job_id(snapshot.input, snapshot.subject)
    status = status_of(run.pipeline, run.state) or "Queued"
    if status == "Completed":
        transcript = ArtifactBody(snapshot.result["files"]["transcript.json"])
        yield Document(transcript_key(snapshot.result["id"]), transcript)
    for name, body in _events(snapshot):
        yield Document(f"events/{id}/{name}.json", body)
    if (key := (snapshot.input or {}).get("idempotencyKey")) is not None:
        hashed = sha256(key.encode()).hexdigest()
        record = {"key": key, "jobId": id, "createdAt": _moment(run.created)}
        yield Document(f"idempotency/{hashed}.json", record, IDEMPOTENCY_LIFE)
    yield Document(job_key(status, id), _job(snapshot, id, status))
    yield from (Removal(job_key(other, id)) for other in STATUSES if other != status)


def _job(snapshot: RunSnapshot, id: str, status: str) -> dict[str, Any]:
    run, history = snapshot.run, snapshot.history
    updated = _moment(history[-1].at if history else run.created)
    job: dict[str, Any] = {
        **(snapshot.input or {}),
        "_tag": f"{status}Job",
        "id": id,
        "status": status,
        "attempts": run.attempts,
        "createdAt": _moment(run.created),
        "updatedAt": updated,
    }
    if status == "MetadataReady" and (metadata := _metadata(snapshot)) is not None:
        job |= {"metadata": metadata, "metadataFetchedAt": updated}
    elif status == "Processing":
        job["processingStartedAt"] = _moment(run.started or run.created)
    elif status == "Completed":
        job |= {"transcriptId": snapshot.result["id"], "completedAt": updated}
    elif status == "Failed":
        job |= {"error": run.error.message if run.error else "failed", "failedAt": updated}
    elif status == "Cancelled":
        job |= {"cancellationReason": run.reason or "cancelled", "cancelledAt": updated}
    return job


def _metadata(snapshot: RunSnapshot) -> Any:
    """Of the first stage's result; the second has it in its input."""
    enriched = snapshot.result if snapshot.run.pipeline == FIRST else snapshot.input
    return (enriched or {}).get("metadata")


def _events(snapshot: RunSnapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with its name, `{milliseconds}_{kind}`."""
    for event in snapshot.history:
        for kind, body in events_of(_committed(event, snapshot)):
            name = EVENT_NAMES.get(kind) or body["to"].lower()
            yield f"{round(1000 * event.at)}_{name}", {"_tag": kind, **body}


def _committed(event: Event, snapshot: RunSnapshot) -> CommittedEvent:
    before, after = event.transition
    run = snapshot.run
    return CommittedEvent(
        id=event.id,
        type=event.type,
        seq=event.seq,
        at=event.at,
        data=msgspec.json.decode(event.data),
        text=event.data,
        before=before,
        after=after,
        run=run.id,
        tenant=run.tenant,
        pipeline=run.pipeline,
        key=run.key,
        labels=run.labels,
        input=snapshot.input,
        result=snapshot.result if after == RunState.SUCCEEDED else None,
    )


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _bucket() -> str | None:
    """The bucket of the blobs, if they are in one; else where the documents go."""
    from holdfast.settings import load

    blobs = load().settings.blobs or ""
    return blobs if blobs.startswith(("gs:", "s3:")) else None


JOBS = transcription_jobs(_bucket)
