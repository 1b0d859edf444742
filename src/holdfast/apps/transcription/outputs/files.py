"""Every file of a transcript, by name."""

from __future__ import annotations

from typing import Any

from holdfast.apps.transcription.outputs.page import render_page
from holdfast.apps.transcription.outputs.subtitles import srt, text, vtt
from holdfast.apps.transcription.outputs.transcript_json import to_json


def render_files(document: dict[str, Any]) -> dict[str, bytes]:
    """File name → content. The page first: it is what people open."""
    return {
        "transcript.html": render_page(document).encode(),
        "transcript.json": to_json(document),
        "transcript.txt": text(document).encode(),
        "transcript.srt": srt(document).encode(),
        "transcript.vtt": vtt(document).encode(),
    }
