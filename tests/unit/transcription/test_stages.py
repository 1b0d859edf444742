"""A recording through both stages, offline."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from tests.speech import TALK, recording, silence
from tests.unit.transcription.harness import FIRST, SECOND, FakeTranscriber, Harness, work

from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.apps.transcription.testing import word_error_rate
from holdfast.errors import Permanent


@pytest.mark.parametrize("format", ["wav", "mp3", "mp4"])
def test_what_is_said_is_understood(format: str) -> None:
    harness = Harness().process(work(recording(format)))
    transcript = harness.json("transcripts/")
    assert word_error_rate(TALK, transcript["rawText"]) < 0.1
    assert 8 < transcript["durationSec"] < 40
    turns = transcript["turns"]
    assert all(a["end"] <= b["start"] + 0.5 for a, b in pairwise(turns))
    job = harness.json("jobs/")
    assert job["metadata"]["title"] == ("talk" if format == "wav" else "A council meeting")
    kinds = [stream["type"] for stream in job["metadata"]["streams"]]
    assert sorted(kinds) == (["audio", "video"] if format == "mp4" else ["audio"])


def test_a_job_that_comes_three_times_is_one_transcript() -> None:
    fake = FakeTranscriber()
    media = recording("wav")
    messages = [work(media, message="m-1"), work(media, message="m-1"), work(media, message="m-2")]
    harness = Harness(transcriber=fake).process(*messages)
    assert sorted(run.key for run in harness.runs) == ["job_7", "job_7:metadata"]
    assert len(fake.calls) == len(set(fake.calls)) > 1
    assert len(harness.bodies("TranscriptComplete")) == 1


def test_each_stage_can_be_a_service_of_its_own() -> None:
    """Two apps with stores of their own share nothing but the topic."""
    bus = InProcessBus()
    fake = FakeTranscriber()
    second = Harness(transcriber=fake, stages=[SECOND], bus=bus)
    first = Harness(transcriber=fake, stages=[FIRST], bus=bus)

    async def story() -> None:
        await bus.open()
        async with first.app as first_app, second.app as two:
            await first_app.receive(FIRST)
            await two.receive(SECOND)
            await bus.publish("work", work(recording("wav")))
            await second.until_there("jobs/Completed/")

    asyncio.run(story())
    assert first.json("jobs/")["status"] == "MetadataReady"
    assert second.json("jobs/")["metadata"]["title"] == "talk"


def test_nothing_said_is_an_empty_transcript() -> None:
    harness = Harness(transcriber=FakeTranscriber()).process(work(silence(3.0)))
    assert harness.json("transcripts/")["turns"] == []


def test_a_failure_is_told_once_and_the_job_is_among_the_failed() -> None:
    fake = FakeTranscriber()
    fake.error = Permanent("nobody can understand this")
    harness = Harness(transcriber=fake).process(work(recording("wav")), until="jobs/Failed/")
    assert "nobody can understand this" in harness.json("jobs/")["error"]
    [failed] = harness.bodies("JobFailed")
    assert failed["jobId"] == "job_7"
    assert not harness.bodies("TranscriptComplete")


@pytest.mark.parametrize(
    ("media", "says"),
    [
        ("http://127.0.0.1/a.mp3", "https"),
        ("https://169.254.169.254/a.mp3", "not a public address"),
        ("file:///etc/passwd", "no host|https"),
    ],
)
def test_a_url_that_is_refused_fails_the_job(media: str, says: str) -> None:
    import re

    harness = Harness().process(work(media), until="jobs/Failed/")
    assert re.search(says, harness.json("jobs/")["error"])


def test_files_of_the_worker_are_no_business_of_messages() -> None:
    harness = Harness(folder="/nowhere").process(work(recording("wav")), until="jobs/Failed/")
    assert "not in the folder" in harness.json("jobs/")["error"]


def test_a_file_that_is_no_recording_says_so(tmp_path: Any) -> None:
    path = tmp_path / "a.mp3"
    path.write_text("hello")
    harness = Harness().process(work(path), until="jobs/Failed/")
    assert "can't be read as a recording" in harness.json("jobs/")["error"]


def test_another_language_names_the_alternatives() -> None:
    harness = Harness().process(work(recording("wav"), language="de"), until="jobs/Failed/")
    error = harness.json("jobs/")["error"]
    assert "English only" in error
    assert "gemini" in error
    assert "openai" in error


def test_a_job_without_an_id_gets_one_and_unknown_fields_travel_along() -> None:
    from holdfast.apps.transcription.model.job import TranscriptionJob

    request = {"youtubeUrl": "https://youtu.be/dQw4w9WgXcQ", "idempotencyKey": "k", "team": "blue"}
    first, again = (TranscriptionJob.model_validate(request) for _ in range(2))
    assert first.id == again.id
    assert first.media.url == request["youtubeUrl"]
    assert json.loads(first.model_dump_json())["team"] == "blue"
    wrapped = {"id": "j", "media": {"type": "youtube", "data": {"url": "https://x.org"}}}
    assert TranscriptionJob.model_validate(wrapped).media.url == "https://x.org"
    for bad in ({"media": {}}, {"media": {"url": "a", "path": "b"}}, {}):
        with pytest.raises(ValueError, match=r"media"):
            TranscriptionJob.model_validate(bad)
