"""The states of a run, in the words of each system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.services.views import RunSummary

if TYPE_CHECKING:
    from holdfast.settings import Settings

PIPELINE_RUN: Mapping[str, str] = {
    "queued": "PENDING",
    "running": "RUNNING",
    "paused": "RUNNING",
    "succeeded": "COMPLETE",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
}
INSTANCE: Mapping[str, str] = {
    "queued": "Queued",
    "running": "Processing",
    "paused": "Processing",
    "succeeded": "Completed",
    "failed": "Failed",
    "cancelled": "Failed",
}
JOB: Mapping[str, str] = {
    "queued": "pending",
    "running": "processing",
    "paused": "processing",
    "succeeded": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Those of the process, read once: reading them takes files and milliseconds."""
    from holdfast.settings import load

    return load().settings


def state_of(words: Mapping[str, str], word: str) -> str | None:
    """The state that is meant by a word, in any case; the first if there are several."""
    return next((state for state, known in words.items() if known.lower() == word.lower()), None)


def subject(run: RunSummary) -> str:
    """What the system calls the run: its key, or its id where it has none."""
    return run.key or run.id


def milliseconds(run: RunSummary) -> int | None:
    return None if run.duration is None else round(1000 * run.duration)
