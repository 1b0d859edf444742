"""What was said, when: segments of a recording, their words, and the transcript made of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioSegment:
    """A part of the recording, cut where nobody speaks. Times are seconds from its beginning."""

    number: int
    start: float
    end: float
    artifact: str
    """16-bit samples at 16 kHz, one channel."""


@dataclass(frozen=True, slots=True)
class AudioSegments:
    duration: float
    segments: list[AudioSegment]

    @property
    def speech(self) -> float:
        return sum(segment.end - segment.start for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says in one go."""

    start: float
    end: float
    text: str
    speaker: str = "host"


@dataclass(frozen=True, slots=True)
class SegmentText:
    """What a transcriber understood in one segment."""

    number: int
    turns: list[Turn]

    @property
    def text(self) -> str:
        return " ".join(turn.text for turn in self.turns if turn.text)
