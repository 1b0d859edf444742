"""The result of the second stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TranscriptFiles:
    """Where each file is, and the figures that people ask for first."""

    id: str
    """Of the transcript."""
    job: str
    files: dict[str, str]
    """File name → where it is in the blob store."""
    transcriber: str
    duration: float
    """Seconds."""
    segments: int
    words: int
    language: str
