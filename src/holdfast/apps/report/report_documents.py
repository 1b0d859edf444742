"""The ending of a report for a web front end: `{reportId}.json` in a bucket, in the format of its
viewer, and then `reports/{reportId}` with the status and the URL, or the error message.

    GCS_BUCKET_NAME=reports HOLDFAST_DOCUMENTS=firestore://project
    HOLDFAST_PROJECTIONS=report_documents

Both belong to one projection and are written in that order: whoever reads `completed` finds the
file. If the worker dies in between, the relay writes both again, and neither is ever replaced by
an older one. Fields that others keep in `reports/{reportId}` stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from holdfast.model.projection import ArtifactBody, Document, DocumentProjection, RunSnapshot
from holdfast.model.run import RunState

STATUS = {
    RunState.QUEUED: "queued",
    RunState.RUNNING: "processing",
    RunState.PAUSED: "processing",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}
USER_LABELS = ("userId", "user_id")


def report_documents(files: str | None = None) -> DocumentProjection:
    """`files` is the URL of the bucket or folder for `{reportId}.json`; None: where the documents
    go."""
    return _projection(lambda: files)


def _projection(files: Any) -> DocumentProjection:
    def documents(snapshot: RunSnapshot) -> Iterator[Document]:
        name, to = f"{snapshot.subject}.json", files()
        if snapshot.run.state is RunState.SUCCEEDED:
            artifact = snapshot.result["files"]["report.json"]
            yield Document(name, ArtifactBody(artifact, viewer_json), to=to)
        yield Document(f"reports/{snapshot.subject}", _reference(snapshot, name, to))

    return DocumentProjection(
        name="report_documents", function=documents, pipeline="report", on_progress=False
    )


def viewer_json(data: bytes) -> bytes:
    """`report.json` as the viewer reads it."""
    from holdfast.apps.report.outputs.json_document import from_json
    from holdfast.apps.report.outputs.t3c import t3c

    return t3c(from_json(data))


def _reference(snapshot: RunSnapshot, name: str, to: str | None) -> dict[str, Any]:
    run = snapshot.run
    last = snapshot.history[-1].at if snapshot.history else run.created
    fields: dict[str, Any] = {
        "id": snapshot.subject,
        "userId": next((run.labels[n] for n in USER_LABELS if n in run.labels), run.tenant),
        "title": snapshot.input.get("title"),
        "status": STATUS[run.state],
        "createdDate": _moment(run.created),
        "lastStatusUpdate": _moment(last),
        "errorMessage": _error(snapshot),
    }
    if snapshot.result is not None:
        fields |= {
            "reportDataUri": _link(name, to),
            "numTopics": snapshot.result["topics"],
            "numClaims": snapshot.result["claims"],
            "numPeople": snapshot.result["people"],
        }
    return {field: value for field, value in fields.items() if value is not None}


def _error(snapshot: RunSnapshot) -> str | None:
    run = snapshot.run
    if run.state is RunState.CANCELLED:
        return run.reason or "the report was cancelled"
    return run.error.message if run.state is RunState.FAILED and run.error else None


def _link(name: str, to: str | None) -> str:
    """Where the file is: by HTTP for buckets."""
    if to is None or not to.startswith(("gs:", "s3:")):
        return name if to is None else f"{to.rstrip('/')}/{name}"
    from holdfast.adapters.buckets.address import parse

    return parse(to).link(name)


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


@cache
def _bucket() -> str | None:
    """The bucket of the blobs, if they are in one."""
    from holdfast.settings import load

    blobs = load().settings.blobs or ""
    return blobs if blobs.startswith(("gs:", "s3:")) else None


REPORT_DOCUMENTS = _projection(_bucket)
