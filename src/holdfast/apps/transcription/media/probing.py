"""What a recording is, by what stands in the file: title, length, format, streams, language."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from holdfast.apps.transcription.audio.decoding import opened, samples_of
from holdfast.errors import Permanent

LANGUAGES = {
    "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it",
    "por": "pt", "nld": "nl", "dut": "nl", "jpn": "ja", "zho": "zh", "chi": "zh", "rus": "ru",
    "ara": "ar", "kor": "ko", "hin": "hi", "tur": "tr", "pol": "pl", "swe": "sv", "ukr": "uk",
}  # fmt: skip
"""Three letters, as files have them, to two."""


def probe(path: str, name: str) -> dict[str, Any]:
    """Fields of `MediaMetadata`. `name` stands for a title where the file has none."""
    with opened(path) as container:
        if not container.streams.audio:
            raise Permanent(f"{name} has no sound in it: nothing can be transcribed")
        tags = {key.lower(): value for key, value in container.metadata.items()}
        duration = container.duration / 1_000_000 if container.duration else 0.0
        streams = [_stream(stream) for stream in container.streams]
        container_format = container.format.name
    known = [stream["language"] for stream in streams if stream.get("language")]
    fields: dict[str, Any] = {
        "title": tags.get("title") or name,
        "organization": tags.get("artist") or tags.get("author"),
        "summary": tags.get("comment") or tags.get("description"),
        "durationSec": round(duration or _counted(path), 3),
        "container": container_format,
        "streams": streams,
        "language": known[0] if known else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def title_of(location: str) -> str:
    """The last part of a path or URL, without its ending."""
    return Path(location.partition("?")[0].rstrip("/")).stem or location


def _stream(stream: Any) -> dict[str, Any]:
    language = language_of(stream.metadata.get("language", ""))
    context = stream.codec_context
    fields = {
        "type": stream.type,
        "codec": context.name if context is not None else None,
        "language": language,
        "channels": getattr(context, "channels", None) if stream.type == "audio" else None,
        "rate": getattr(context, "sample_rate", None) if stream.type == "audio" else None,
        "width": getattr(context, "width", None) if stream.type == "video" else None,
        "height": getattr(context, "height", None) if stream.type == "video" else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def language_of(text: str) -> str | None:
    """`en`, `de-CH`; None if it is unknown or undetermined."""
    code, _, region = text.strip().replace("_", "-").partition("-")
    code = LANGUAGES.get(code.lower(), code.lower())
    if not re.fullmatch("[a-z]{2}", code):
        return None
    return f"{code}-{region.upper()}" if re.fullmatch("[A-Za-z]{2}", region) else code


def _counted(path: str) -> float:
    """The length of a file that does not say it."""
    return sum(len(part) for part in samples_of(path)) / 32_000
