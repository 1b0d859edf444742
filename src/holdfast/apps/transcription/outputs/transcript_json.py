"""The transcript as one document, with the fields that programs of the ingestion know, and the
words with their times beside them.

The times of words are estimated: a turn's time is divided among its words by their length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.apps.transcription.model.job import TranscriptionJob
from holdfast.apps.transcription.model.transcript import AudioSegments, SegmentText, Turn, Word

Json = dict[str, Any]


def transcript_id(job: str, transcriber: str) -> str:
    """`trn_{jobId}_{6 hex}`: the same for every attempt of a job."""
    return f"trn_{job}_{sha256(f'{job}/{transcriber}'.encode()).hexdigest()[:6]}"


def assemble(
    job: TranscriptionJob,
    segments: AudioSegments,
    speech: Sequence[SegmentText],
    transcriber: str,
    now: datetime,
) -> Json:
    moment = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    turns = [turn for segment in speech for turn in segment.turns]
    text = "\n".join(turn.text for turn in turns)
    context = job.transcriptionContext
    return {
        "id": transcript_id(job.id, transcriber),
        "jobId": job.id,
        "mediaResource": job.media.model_dump(exclude_defaults=True),
        "title": job.metadata.title if job.metadata else job.media.location,
        "language": job.spoken_language,
        "durationSec": round(segments.duration, 3),
        "rawText": text,
        "turns": [_turn(turn) for turn in turns],
        "inferenceConfig": {"model": transcriber, "temperature": 0},
        "generationPrompt": _prompt(transcriber),
        "transcriptionContext": context.model_dump() if context else {},
        "llmArtifactId": f"art_{sha256(text.encode()).hexdigest()[:24]}",
        "createdAt": moment,
        "updatedAt": moment,
    }


def _turn(turn: Turn) -> Json:
    return {
        "timestamp": clock(turn.start),
        "speaker": turn.speaker,
        "text": turn.text,
        "start": round(turn.start, 3),
        "end": round(turn.end, 3),
        "words": [
            {"text": word.text, "start": round(word.start, 3), "end": round(word.end, 3)}
            for word in words_of(turn)
        ],
    }


def words_of(turn: Turn) -> list[Word]:
    texts = turn.text.split()
    weights = [len(text) + 1 for text in texts]
    rate = (turn.end - turn.start) / sum(weights) if weights else 0.0
    words: list[Word] = []
    at = turn.start
    for text, weight in zip(texts, weights, strict=True):
        words.append(Word(text, at, at + weight * rate))
        at += weight * rate
    return words


def clock(seconds: float) -> str:
    """`HH:MM:SS`."""
    seconds_whole = int(seconds)
    return f"{seconds_whole // 3600:02d}:{seconds_whole // 60 % 60:02d}:{seconds_whole % 60:02d}"


def _prompt(transcriber: str) -> Json:
    if not transcriber.startswith("google:"):
        return {"templateId": "none", "templateVersion": "1", "compiledText": ""}
    from holdfast.apps.transcription.hosted.gemini import PROMPT, TEMPLATE, TEMPLATE_VERSION

    return {
        "templateId": TEMPLATE,
        "templateVersion": TEMPLATE_VERSION,
        "compiledText": PROMPT,
    }


def to_json(document: Json) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
