"""Hosted transcribers and YouTube's Data API, against servers that speak as they do."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.speech import recording
from tests.unit.transcription.harness import Harness, work

from holdfast.apps.transcription.hosted.gemini import GeminiTranscriber
from holdfast.apps.transcription.hosted.openai import OpenAITranscriber
from holdfast.apps.transcription.media import youtube
from holdfast.apps.transcription.media.fetching import FetchLimits
from holdfast.apps.transcription.media.youtube import details, video_id
from holdfast.apps.transcription.model.transcript import Turn
from holdfast.apps.transcription.transcriber import Speech
from holdfast.apps.transcription.transcribers import AppTranscribers
from holdfast.errors import ConfigurationError, Permanent, Transient

KEY = "sk-canary-4711-transcription"


class Answers:
    """A server that remembers what it was asked and says what it was told to."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.requests.append(
                    (self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                )
                status, answer = outer.answers[min(len(outer.requests), len(outer.answers)) - 1]
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    servers: list[Answers] = []
    for name in ("OPENAI_API_KEY", "GOOGLE_AI_API_KEY"):
        monkeypatch.setenv(name, KEY)

    def make(*answers: tuple[int, Any]) -> Answers:
        servers.append(Answers(*answers))
        return servers[-1]

    yield make
    for server in servers:
        server.server.shutdown()
        server.server.server_close()


class Ctx:
    idempotency_key = "key-1"

    def __init__(self) -> None:
        self.usages: list[dict[str, Any]] = []

    def usage(self, **values: Any) -> None:
        self.usages.append(values)


SPEECH = Speech(bytes(32_000 * 2), 10.0, "en-GB", "A council meeting")


def heard(transcriber: Any, speech: Speech = SPEECH) -> list[Turn]:
    async def story() -> list[Turn]:
        try:
            return await transcriber.transcribe(speech, Ctx())
        finally:
            await transcriber.aclose()

    return asyncio.run(story())


def openai(server: Answers) -> OpenAITranscriber:
    return OpenAITranscriber(f"openai:gpt-transcribe?base_url={server.url}&key=env:OPENAI_API_KEY")


def gemini(server: Answers) -> GeminiTranscriber:
    return GeminiTranscriber(
        f"google:gemini-2.5-flash?base_url={server.url}&key=env:GOOGLE_AI_API_KEY"
    )


def said(*turns: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({"turns": turns})
    return {
        "candidates": [{"content": {"parts": [{"text": text}]}}],
        "usageMetadata": {"promptTokenCount": 64, "candidatesTokenCount": 8},
    }


def test_openai_is_asked_for_a_text(answering: Any) -> None:
    server = answering((200, {"text": " Good evening. "}))
    assert heard(openai(server)) == [Turn(10.0, 12.0, "Good evening.")]
    [(path, headers, body)] = server.requests
    assert path == "/audio/transcriptions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["idempotency-key"] == "key-1"
    for part in (
        b"gpt-transcribe",
        b'name="language"\r\n\r\nen\r\n',
        b"A council meeting",
        b"RIFF",
    ):
        assert part in body


def test_gemini_says_who_says_what_and_when(answering: Any) -> None:
    answer = said(
        {"start": 0, "end": 0.5, "speaker": "host", "text": "Good evening."},
        {"start": 0.4, "end": 99, "speaker": "somebody", "text": " Hello. "},
        {"start": 1, "end": 1, "speaker": "guest", "text": "  "},
    )
    server = answering((200, answer))
    assert heard(gemini(server)) == [
        Turn(10.0, 10.5, "Good evening.", "host"),
        Turn(10.5, 12.0, "Hello.", "guest"),
    ]
    [(path, headers, body)] = server.requests
    assert path == "/models/gemini-2.5-flash:generateContent"
    assert headers["x-goog-api-key"] == KEY
    assert KEY not in path
    parts = json.loads(body)["contents"][0]["parts"]
    assert "A council meeting" in parts[0]["text"]
    assert parts[1]["inlineData"]["mimeType"] == "audio/wav"


@pytest.mark.parametrize("make", [openai, gemini])
@pytest.mark.parametrize(
    ("status", "error"),
    [(429, Transient), (503, Transient), (401, ConfigurationError), (400, Permanent)],
)
def test_errors_say_what_to_do_and_nothing_of_keys(
    answering: Any, make: Any, status: int, error: type[Exception]
) -> None:
    server = answering((status, {"error": {"message": f"no, {KEY}"}}))
    with pytest.raises(error) as raised:
        heard(make(server))
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("make", [openai, gemini])
def test_an_answer_of_another_form_is_asked_for_again(answering: Any, make: Any) -> None:
    with pytest.raises(Transient):
        heard(make(answering((200, {"other": 1}))))


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        AppTranscribers().named("openai").check("en")
    with pytest.raises(ConfigurationError, match="GOOGLE_AI_API_KEY"):
        AppTranscribers().named("gemini").check("de")
    with pytest.raises(ConfigurationError, match="moonshine, gemini, openai"):
        AppTranscribers().named("nobody")


def test_a_job_can_choose_gemini_and_another_language(answering: Any) -> None:
    server = answering(
        (200, said({"start": 0, "end": 5, "speaker": "guest", "text": "Guten Abend."}))
    )
    address = f"google:gemini-2.5-flash?base_url={server.url}&key=env:GOOGLE_AI_API_KEY"
    harness = Harness().process(work(recording("wav"), transcriber=address, language="de"))
    transcript = harness.json("transcripts/")
    assert transcript["turns"][0]["speaker"] == "guest"
    assert transcript["language"] == "de"
    assert transcript["generationPrompt"]["templateId"] == "transcribe-segment"
    assert KEY not in json.dumps(transcript)


# --- YouTube --------------------------------------------------------------------------------------


VIDEO = {
    "snippet": {
        "title": "A talk",
        "channelTitle": "The town",
        "description": "About trees",
        "tags": ["trees"],
        "defaultAudioLanguage": "en-GB",
    },
    "contentDetails": {"duration": "PT1H2M3S"},
}
LIVE = {**VIDEO, "contentDetails": {"duration": "P0D"}}


@pytest.mark.parametrize(
    ("url", "id"),
    [
        ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=3", "dQw4w9WgXcQ"),
        ("https://youtu.be/dQw4w9WgXcQ?si=x", "dQw4w9WgXcQ"),
        ("https://m.youtube.com/shorts/dQw4w9WgXcQ", "dQw4w9WgXcQ"),
        ("https://www.youtube.com/live/dQw4w9WgXcQ", "dQw4w9WgXcQ"),
        ("https://www.youtube.com/watch?v=../../etc", None),
        ("https://youtube.com.example.org/watch?v=dQw4w9WgXcQ", None),
        ("https://example.org/watch?v=dQw4w9WgXcQ", None),
    ],
)
def test_videos_are_known_by_their_urls(url: str, id: str | None) -> None:
    assert video_id(url) == id


def test_the_details_of_a_video_are_one_call_with_the_key_in_a_header(answering: Any) -> None:
    server = answering((200, {"items": [VIDEO]}))
    metadata = details("dQw4w9WgXcQ", KEY, api=f"{server.url}/videos")
    assert metadata["title"] == "A talk"
    assert metadata["durationSec"] == 3723.0
    assert metadata["language"] == "en-GB"
    [(path, headers, _)] = server.requests
    assert "id=dQw4w9WgXcQ" in path
    assert KEY not in path
    assert headers["x-goog-api-key"] == KEY


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ((200, {"items": []}), Permanent, "no video"),
        ((200, {"items": [LIVE]}), Permanent, "no length yet"),
        ((403, {}), ConfigurationError, "YOUTUBE_API_KEY"),
        ((503, {}), Transient, "503"),
        ((200, []), Transient, "unknown"),
    ],
)
def test_youtube_errors_say_what_to_do(
    answering: Any, answer: Any, error: type[Exception], says: str
) -> None:
    server = answering(answer)
    with pytest.raises(error, match=says) as raised:
        details("dQw4w9WgXcQ", KEY, api=f"{server.url}/videos")
    assert KEY not in str(raised.value)


def test_without_yt_dlp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(ConfigurationError, match=r"holdfast\[youtube\]"):
        youtube.download("https://youtu.be/dQw4w9WgXcQ", tmp_path, None)  # type: ignore[arg-type]


def test_sound_that_is_too_large_or_not_there_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """yt-dlp skips such a file without an error."""

    class YoutubeDL:
        def __init__(self, options: dict[str, Any]) -> None:
            assert options["max_filesize"] == 1000

        def __enter__(self) -> YoutubeDL:
            return self

        def __exit__(self, *_: object) -> None: ...

        def download(self, urls: list[str]) -> None: ...

    utils = SimpleNamespace(DownloadError=RuntimeError)
    monkeypatch.setitem(sys.modules, "yt_dlp", SimpleNamespace(YoutubeDL=YoutubeDL, utils=utils))
    monkeypatch.setitem(sys.modules, "yt_dlp.utils", utils)
    with pytest.raises(Permanent, match=r"transcription.max_bytes"):
        youtube.download("https://youtu.be/dQw4w9WgXcQ", tmp_path, FetchLimits(max_bytes=1000))
