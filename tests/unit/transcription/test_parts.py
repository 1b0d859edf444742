"""Cutting at silences, subtitles, words and the page."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.speech import spoken

from holdfast.apps.transcription.audio.decoding import BYTES_PER_SECOND, samples_of
from holdfast.apps.transcription.audio.segmenting import (
    WINDOW_BYTES,
    WINDOW_SECONDS,
    Piece,
    Segmenter,
    silero,
)
from holdfast.apps.transcription.command import folders
from holdfast.apps.transcription.model.job import TranscriptionJob
from holdfast.apps.transcription.model.transcript import AudioSegments, SegmentText, Turn, Word
from holdfast.apps.transcription.moonshine.vocabulary import Vocabulary
from holdfast.apps.transcription.moonshine.weights import weights_folder
from holdfast.apps.transcription.outputs.page import media_link, render_page
from holdfast.apps.transcription.outputs.subtitles import LINES, WIDTH, cues, srt, text, vtt
from holdfast.apps.transcription.outputs.transcript_json import (
    assemble,
    clock,
    transcript_id,
    words_of,
)
from holdfast.apps.transcription.testing import word_error_rate


class Pattern:
    """Sound that is speech where it is loud: each window's first byte is its probability."""

    def __call__(self, window: bytes) -> float:
        return window[0] / 100


def sound(*parts: tuple[float, float]) -> bytes:
    """(seconds, probability) after one another."""
    return b"".join(
        bytes([round(100 * probability)]) * (WINDOW_BYTES * round(seconds / WINDOW_SECONDS))
        for seconds, probability in parts
    )


def pieces(data: bytes, longest: float = 28.0) -> list[Piece]:
    chunks = (data[start : start + 1000] for start in range(0, len(data), 1000))
    return list(Segmenter(Pattern(), longest).pieces(chunks))


def test_speech_is_cut_at_silences() -> None:
    parts = pieces(sound((1, 0), (10, 0.9), (1, 0), (9, 0.9), (5, 0)))
    assert [(round(p.start, 1), round(p.end, 1)) for p in parts] == [(0.8, 11.2), (11.8, 21.2)]


def test_a_short_pause_in_a_short_piece_is_no_reason_to_cut() -> None:
    assert len(pieces(sound((3, 0.9), (1, 0), (3, 0.9), (3, 0)))) == 1
    assert len(pieces(sound((3, 0.9), (3, 0), (3, 0.9), (3, 0)))) == 2


def test_what_does_not_end_is_cut_at_its_quietest_place() -> None:
    parts = pieces(sound((24, 0.9), (0.2, 0.4), (30, 0.9)))
    assert all(p.end - p.start <= 28.1 for p in parts)
    assert parts[0].end == pytest.approx(24.0, abs=0.3)
    assert all(a.end == pytest.approx(b.start) for a, b in pairwise(parts))


def test_nothing_that_is_said_is_lost() -> None:
    data = sound((2, 0), (20, 0.9), (0.3, 0), (40, 0.8), (1, 0.2), (7, 0.6), (2, 0), (0.5, 0.9))
    loud = sum(1 for start in range(0, len(data), WINDOW_BYTES) if data[start] >= 50)
    samples = sum(
        1
        for piece in pieces(data)
        for start in range(0, len(piece.samples), WINDOW_BYTES)
        if piece.samples[start] >= 50
    )
    assert samples == loud
    assert pieces(b"") == []
    assert pieces(sound((10, 0))) == []


def test_a_real_detector_finds_the_pause_between_two_paragraphs() -> None:
    segmenter = Segmenter(silero(), 28.0)
    parts = list(segmenter.pieces(samples_of(str(spoken()))))
    spoken_seconds = sum(len(piece.samples) for piece in parts) / BYTES_PER_SECOND
    assert 0.8 * segmenter.duration < spoken_seconds <= segmenter.duration + 0.1


def test_the_weights_are_read_and_the_package_is_not_imported() -> None:
    import sys

    vocabulary = Vocabulary(weights_folder() / "tokenizer.bin")
    assert len(vocabulary.tokens) == 32_000
    assert vocabulary.tokens[1:3] == [b"<s>", b"</s>"]
    assert "moonshine_cpp" not in sys.modules


def test_word_error_rate_counts_changes() -> None:
    assert word_error_rate("The buses are late.", "the buses are late") == 0
    assert word_error_rate("a b c d", "a x c") == 0.5
    assert word_error_rate("a", "a b c") == 2.0


# --- outputs --------------------------------------------------------------------------------------

HOSTILE = 'Trees & <script>alert("x")</script> --> benches </p> 日本'


def document(*turns: Turn, media: Any = None) -> dict[str, Any]:
    job = TranscriptionJob.model_validate(
        {"id": "job_7", "media": media or {"url": "https://example.org/talk.mp3?a=b"}}
    )
    segments = [SegmentText(number, [turn]) for number, turn in enumerate(turns)]
    now = datetime(2026, 1, 2, tzinfo=UTC)
    return assemble(job, AudioSegments(20.0, []), segments, "moonshine", now)


TALK = document(
    Turn(0.5, 9.5, "Good evening and welcome to the meeting of the city council, all of you. " * 2),
    Turn(3661.0, 3664.0, HOSTILE),
)


def test_the_transcript_has_the_known_fields() -> None:
    assert set(TALK) >= {
        "id", "jobId", "mediaResource", "rawText", "turns", "inferenceConfig", "generationPrompt",
        "transcriptionContext", "llmArtifactId", "createdAt", "updatedAt",
    }  # fmt: skip
    assert TALK["id"] == transcript_id("job_7", "moonshine") == document()["id"]
    assert re.fullmatch(r"trn_job_7_[0-9a-f]{6}", TALK["id"])
    assert TALK["turns"][1]["timestamp"] == clock(3661.0) == "01:01:01"
    words = TALK["turns"][0]["words"]
    assert words[0]["start"] == 0.5
    assert words[-1]["end"] == pytest.approx(9.5)
    assert all(a["end"] == b["start"] for a, b in pairwise(words))


def test_subtitles_have_two_lines_and_stay_in_time() -> None:
    for cue in cues(TALK):
        lines = cue.text.split("\n")
        assert len(lines) <= LINES
        assert all(len(line) <= WIDTH for line in lines)
    blocks = srt(TALK).strip().split("\n\n")
    assert blocks[0].startswith("1\n00:00:00,500 --> ")
    assert blocks[-1].split("\n")[1].endswith("--> 01:01:04,000")
    assert "-->" not in re.sub(r"^\d\d:.*-->.*$", "", vtt(TALK), flags=re.MULTILINE)
    assert "&lt;script&gt;" in vtt(TALK)
    assert text(TALK).startswith("[00:00:00] Good evening")


def test_the_page_holds_no_script_of_strangers() -> None:
    page = render_page({**TALK, "title": HOSTILE})
    assert page.count("<script>") == 1
    assert "alert(&quot;x&quot;)" in page
    assert 'src="https://example.org/talk.mp3?a=b"' in page


@pytest.mark.parametrize(
    ("location", "link"),
    [
        ("https://example.org/a.mp3", "https://example.org/a.mp3"),
        ("/home/ada/a b.mp3", "a%20b.mp3"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("", ""),
    ],
)
def test_only_the_web_and_neighbours_are_links(location: str, link: str) -> None:
    assert media_link(location) == link


def test_a_subtitle_ends_with_its_sentence() -> None:
    turn = Turn(0.0, 6.0, "We plant more trees in the park. No shade is left. Thank you.")
    document = {"turns": [{"words": [as_json(word) for word in words_of(turn)]}]}
    assert [cue.text for cue in cues(document)] == [
        "We plant more trees in the park.",
        "No shade is left. Thank you.",
    ]


def as_json(word: Word) -> dict[str, Any]:
    return {"text": word.text, "start": word.start, "end": word.end}


@pytest.mark.parametrize(
    ("recordings", "names"),
    [
        (["a/talk.mp3"], [""]),
        (["a/talk.mp3", "walk.mp3"], ["talk", "walk"]),
        (["talk.wav", "talk.mp3"], ["talk.wav", "talk.mp3"]),
        (["a/talk.mp3", "b/talk.mp3", "c/talk.mp3"], ["talk.mp3", "talk-2", "talk-3"]),
        (
            ["https://youtube.com/watch?v=1", "https://example.org/%2e%2e%2f..%2f", "x/../.."],
            ["watch_v_1", "_.", "recording"],
        ),
    ],
)
def test_every_recording_has_a_folder_of_its_own(recordings: list[str], names: list[str]) -> None:
    paths = folders(recordings, Path("out"))
    assert [str(paths[name]) for name in recordings] == [str(Path("out") / name) for name in names]
