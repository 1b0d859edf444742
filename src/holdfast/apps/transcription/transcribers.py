"""Who transcribes, by name: `moonshine`, `gemini`, `openai`, or the address of a model of one of
the two: `google:MODEL`, `openai:MODEL?base_url=…`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.apps.transcription.moonshine.transcriber import MoonshineTranscriber
from holdfast.apps.transcription.transcriber import Transcriber
from holdfast.errors import ConfigurationError

NAMES = "moonshine, gemini, openai, google:MODEL or openai:MODEL"


class AppTranscribers:
    """`Transcribers`, each made when it is first asked for."""

    def __init__(self, default: str = "moonshine") -> None:
        self._default = default
        self._made: dict[str, Transcriber] = {}

    def named(self, name: str) -> Transcriber:
        name = name or self._default
        if name not in self._made:
            self._made[name] = _make(name)
        return self._made[name]

    async def aclose(self) -> None:
        made, self._made = self._made, {}
        for transcriber in made.values():
            if (close := getattr(transcriber, "aclose", None)) is not None:
                await close()


def _make(name: str) -> Transcriber:
    if name == "moonshine":
        return MoonshineTranscriber()
    vendor = name.partition(":")[0]
    if vendor in ("gemini", "google"):
        from holdfast.apps.transcription.hosted.gemini import MODEL, GeminiTranscriber

        return GeminiTranscriber(name if vendor == "google" else MODEL)
    if vendor == "openai":
        from holdfast.apps.transcription.hosted.openai import MODEL, OpenAITranscriber

        return OpenAITranscriber(name if ":" in name else MODEL)
    raise ConfigurationError(f"there is no transcriber {name!r}: write {NAMES}")


def make_transcribers(use: Callable[[type[Any]], Any]) -> AppTranscribers:
    """What `ctx.use(Transcribers)` gives."""
    from holdfast.settings import load

    return AppTranscribers(load().settings.transcription.transcriber)


def make_sources(use: Callable[[type[Any]], Any]) -> Any:
    """What `ctx.use(MediaSources)` gives."""
    from holdfast.apps.transcription.media.fetching import FetchLimits
    from holdfast.apps.transcription.media.source import MediaSources
    from holdfast.settings import load

    settings = load().settings.transcription
    limits = FetchLimits(settings.hosts, settings.max_bytes, settings.max_seconds)
    return MediaSources(limits, settings.folder)
