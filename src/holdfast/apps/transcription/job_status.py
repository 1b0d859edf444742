"""What other systems call the state of a job, which passes through two runs."""

from __future__ import annotations

from typing import Any

from holdfast.model.run import RunState

STATUSES = ("Queued", "MetadataReady", "Processing", "Completed", "Failed", "Cancelled")
FIRST, SECOND = "metadata", "transcription"

_ENDS = {RunState.FAILED: "Failed", RunState.CANCELLED: "Cancelled"}
_STATUS = {
    FIRST: {RunState.QUEUED: "Queued", RunState.SUCCEEDED: "MetadataReady"},
    SECOND: {RunState.QUEUED: "MetadataReady", RunState.SUCCEEDED: "Completed"},
}


def status_of(pipeline: str, state: str | None) -> str | None:
    """None for a run that is not there yet."""
    if not state:
        return None
    known = RunState(state)
    return _ENDS.get(known) or _STATUS[pipeline].get(known, "Processing")


def job_id(input: Any, subject: str) -> str:
    """The id of the job behind a run; runs of the first stage have keys of their own."""
    return (input or {}).get("id") or subject.removesuffix(f":{FIRST}")


def transcript_key(id: str) -> str:
    return f"transcripts/{id}.json"


def job_key(status: str, id: str) -> str:
    return f"jobs/{status}/{id}.json"
