"""The two stages.

    metadata        what the recording is, from the file or from YouTube; its result is the job with
                    `metadata`, which is handed over as a message with `worker-type: transcription`
    transcription   segments ─► speech ─► transcript

Each is a pipeline of its own: a service may run one of them or both. The second stage cuts the
recording at silences and stores the pieces; each piece that is understood is a checkpoint, so that
a crash repeats at most those under way."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from holdfast.apps.transcription.media.source import MediaSources
from holdfast.apps.transcription.media.youtube import KEY, video_id
from holdfast.apps.transcription.messages import HAND_OVER
from holdfast.apps.transcription.model.job import MediaMetadata, TranscriptionJob
from holdfast.apps.transcription.model.transcript import (
    AudioSegment,
    AudioSegments,
    SegmentText,
)
from holdfast.apps.transcription.result import TranscriptFiles
from holdfast.apps.transcription.transcriber import Speech, Transcribers
from holdfast.model.pipeline import Pipeline
from holdfast.ports.context import BlockingContext, Context

LONG = "12h"

metadata: Pipeline[TranscriptionJob] = Pipeline(
    "metadata",
    input=TranscriptionJob,
    key=lambda job: f"{job.id}:metadata",
    labels=lambda job: _labels(job),
)
transcription: Pipeline[TranscriptionJob] = Pipeline(
    "transcription",
    input=TranscriptionJob,
    timeout=LONG,
    key=lambda job: job.id,
    labels=lambda job: _labels(job),
)


def _labels(job: TranscriptionJob) -> dict[str, str]:
    return {"requestId": job.requestId} if job.requestId else {}


# --- metadata -------------------------------------------------------------------------------------


@metadata.step
def details(job: TranscriptionJob, ctx: BlockingContext) -> MediaMetadata:
    """Title, length, format, streams and language of the recording."""
    from holdfast.apps.transcription.media import youtube

    sources = ctx.use(MediaSources)
    video, key = video_id(job.media.url), os.environ.get(KEY, "")
    if video is not None and key:
        details = youtube.details(video, key, api=sources.youtube_api)
    else:
        details = _probed(job, sources, ctx)
    return MediaMetadata.model_validate({**_known(job), **details})


def _probed(job: TranscriptionJob, sources: MediaSources, ctx: BlockingContext) -> dict[str, Any]:
    from holdfast.apps.transcription.media.probing import probe, title_of

    with sources.opened(job.media, lambda: ctx.cancelled) as path:
        return probe(path, title_of(job.media.location))


def _known(job: TranscriptionJob) -> dict[str, Any]:
    """What the job itself says."""
    context = job.transcriptionContext
    speakers = [
        speaker if isinstance(speaker, dict) else {"name": str(speaker)}
        for speaker in (context.expectedSpeakers if context else [])
    ]
    fields: dict[str, Any] = {
        "mediaResourceId": job.media.id,
        "jobId": job.id,
        "createdAt": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    if speakers:
        fields |= {"speakers": speakers, "speakerCount": len(speakers)}
    return fields


@metadata.step
def enrich(job: TranscriptionJob, details: MediaMetadata) -> TranscriptionJob:
    """The job with what is known about its recording: what the second stage gets."""
    return job.enrich(details)


metadata.projections.append(HAND_OVER)


# --- transcription --------------------------------------------------------------------------------


@transcription.step(timeout=LONG)
def segments(job: TranscriptionJob, ctx: BlockingContext) -> AudioSegments:
    """The recording in pieces, cut where nobody speaks."""
    from holdfast.apps.transcription.audio.decoding import samples_of
    from holdfast.apps.transcription.audio.segmenting import Segmenter, silero

    transcriber = ctx.use(Transcribers).named(job.transcriber)
    transcriber.check(job.spoken_language)
    segmenter = Segmenter(silero(), transcriber.max_seconds)
    total = int(job.metadata.durationSec) if job.metadata else None
    pieces: list[AudioSegment] = []
    with ctx.use(MediaSources).opened(job.media, lambda: ctx.cancelled) as path:
        for piece in segmenter.pieces(samples_of(path)):
            name = f"segment-{len(pieces):05d}.pcm"
            artifact = ctx.artifact(name, piece.samples)
            pieces.append(AudioSegment(len(pieces), piece.start, piece.end, artifact))
            ctx.progress(int(piece.end), total)
    return AudioSegments(segmenter.duration, pieces)


@transcription.step(timeout=LONG)
async def speech(job: TranscriptionJob, segments: AudioSegments, ctx: Context) -> list[SegmentText]:
    """What is said in each piece."""
    transcriber = ctx.use(Transcribers).named(job.transcriber)
    hints = _hints(job)

    async def understand(segment: AudioSegment, ctx: Context) -> SegmentText:
        samples = await ctx.read(segment.artifact)
        speech = Speech(samples, segment.start, job.spoken_language, hints)
        return SegmentText(segment.number, await transcriber.transcribe(speech, ctx))

    return await ctx.map(
        understand,
        segments.segments,
        key=lambda segment: segment.number,
        concurrency=transcriber.in_flight,
    )


def _hints(job: TranscriptionJob) -> str:
    context, known = job.transcriptionContext, job.metadata
    words = [known.title] if known else []
    if context is not None:
        words += [str(hint) for hint in (*context.contentHints, *context.expectedSpeakers)]
    return ", ".join(words)[:1000]


@transcription.step
def transcript(
    job: TranscriptionJob,
    segments: AudioSegments,
    speech: list[SegmentText],
    ctx: BlockingContext,
) -> TranscriptFiles:
    """All of it in one document, and that as subtitles, text and a page."""
    from holdfast.apps.transcription.outputs.files import render_files
    from holdfast.apps.transcription.outputs.transcript_json import assemble

    transcriber = ctx.use(Transcribers).named(job.transcriber)
    document = assemble(job, segments, speech, transcriber.name, datetime.now(UTC))
    files = {name: ctx.artifact(name, data) for name, data in render_files(document).items()}
    return TranscriptFiles(
        id=document["id"],
        job=job.id,
        files=files,
        transcriber=transcriber.name,
        duration=segments.duration,
        segments=len(segments.segments),
        words=len(document["rawText"].split()),
        language=job.spoken_language,
    )
