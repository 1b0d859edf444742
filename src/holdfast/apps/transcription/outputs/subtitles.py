"""Subtitles, as SubRip and WebVTT, and plain text: lines of at most 42 characters, two at a time,
as viewers of subtitles expect them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

WIDTH = 42
LINES = 2
LONGEST = 6.0
"""Seconds that a subtitle stays."""


class Cue(Struct, frozen=True):
    start: float
    end: float
    text: str


def cues(document: Mapping[str, Any]) -> Iterator[Cue]:
    """Words gathered until two lines are full, or the time is, or a sentence ends that is long
    enough to stand alone."""
    for turn in document["turns"]:
        gathered: list[Mapping[str, Any]] = []
        for word in turn["words"]:
            if gathered and not _fits([*gathered, word]):
                yield _cue(gathered)
                gathered = []
            gathered.append(word)
            if _is_sentence(gathered):
                yield _cue(gathered)
                gathered = []
        if gathered:
            yield _cue(gathered)


def _is_sentence(words: Sequence[Mapping[str, Any]]) -> bool:
    text = " ".join(word["text"] for word in words)
    return len(text) >= WIDTH // 2 and text.endswith((".", "?", "!", "…"))


def _fits(words: Sequence[Mapping[str, Any]]) -> bool:
    lasts = words[-1]["end"] - words[0]["start"]
    return lasts <= LONGEST and len(_lines(words)) <= LINES


def _lines(words: Sequence[Mapping[str, Any]]) -> list[str]:
    return textwrap.wrap(" ".join(word["text"] for word in words), WIDTH, break_long_words=False)


def _cue(words: Sequence[Mapping[str, Any]]) -> Cue:
    return Cue(words[0]["start"], words[-1]["end"], "\n".join(_lines(words)))


def srt(document: Mapping[str, Any]) -> str:
    return "".join(
        f"{number}\n{_time(cue.start, ',')} --> {_time(cue.end, ',')}\n{cue.text}\n\n"
        for number, cue in enumerate(cues(document), 1)
    )


def vtt(document: Mapping[str, Any]) -> str:
    """`-->` in a text would begin a new cue."""
    blocks = (
        f"{_time(cue.start, '.')} --> {_time(cue.end, '.')}\n{_escaped(cue.text)}\n\n"
        for cue in cues(document)
    )
    return "WEBVTT\n\n" + "".join(blocks)


def text(document: Mapping[str, Any]) -> str:
    """A paragraph for each turn, with the time at which it begins."""
    return "".join(f"[{turn['timestamp']}] {turn['text']}\n\n" for turn in document["turns"])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(seconds: float, point: str) -> str:
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"
