"""The port of those who understand speech."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from holdfast.apps.transcription.model.transcript import Turn
from holdfast.ports.context import Context


class Speech(Struct, frozen=True):
    """A segment to be understood."""

    samples: bytes
    """16 bits each, 16,000 a second, one channel."""
    start: float
    """Where it begins in the recording, in seconds: the times of turns count from there."""
    language: str
    hints: str = ""
    """What is known about the recording: title, speakers, words that occur in it."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / 32_000


class Transcriber(Protocol):
    """Understands segments, one call each.

    Who may call: any task; calls may overlap, up to `in_flight` at once. Who retries: the engine.
    Errors: `Transient`; `Permanent` for speech that it can't understand; `ConfigurationError` for a
    key or a package that is missing."""

    name: str
    """As it is named in settings and in the transcript."""
    max_seconds: float
    """The longest segment that it takes."""
    in_flight: int

    def check(self, language: str) -> None:
        """Raise ConfigurationError or Permanent if it can't do this language, or can't work here at
        all: before anything is fetched."""
        ...

    async def transcribe(self, speech: Speech, ctx: Context) -> list[Turn]:
        """What is said, in order; empty if nothing is."""
        ...


class Transcribers(Protocol):
    """Transcribers by name: what steps find with `ctx.use(Transcribers)`."""

    def named(self, name: str) -> Transcriber:
        """Empty: the one that the settings name. Raises ConfigurationError."""
        ...
