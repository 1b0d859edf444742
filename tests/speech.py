"""Spoken samples: espeak-ng says a text, and the sound is put into a file of a format."""

from __future__ import annotations

import subprocess
import wave
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import av
import numpy as np
from av import AudioFrame, VideoFrame

from tests.missing import program

TALK = """Good evening, and welcome to the meeting of the city council. We want to plant more trees
in the park, because there is no shade in summer.

The library will open in September, with longer hours than before. Thank you for listening."""


@cache
def spoken(text: str = TALK) -> Path:
    """A wav file in which a machine says the text. Made once for all tests of this process."""
    say = program("espeak-ng", "`apt-get install espeak-ng`, or `make speech`")
    path = Path(mkdtemp(prefix="holdfast-speech-")) / "talk.wav"
    subprocess.run([say, "-v", "en-us", "-s", "150", "-w", str(path), text], check=True)
    return path


@cache
def recording(format: str, text: str = TALK) -> Path:
    """The same as wav, mp3, or mp4 with a picture."""
    source = spoken(text)
    path = source.with_suffix(f".{format}")
    if path != source:
        _convert(source, path)
    return path


def _convert(source: Path, path: Path) -> None:
    with av.open(str(path), "w") as out:
        out.metadata["title"] = "A council meeting"
        sound = out.add_stream("mp3" if path.suffix == ".mp3" else "aac", rate=22_050)
        picture = None
        if path.suffix == ".mp4":
            picture = out.add_stream("mpeg4", rate=1)
            picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        frame = _samples(source)
        seconds = frame.samples // frame.sample_rate
        if picture is not None:
            black = np.zeros((48, 64, 3), np.uint8)
            for number in range(seconds):
                image = VideoFrame.from_ndarray(black, format="rgb24")
                image.pts = number
                out.mux(picture.encode(image))
            out.mux(picture.encode(None))
        resampler = av.AudioResampler(sound.format, sound.layout, sound.rate)
        for part in resampler.resample(frame):
            out.mux(sound.encode(part))
        out.mux(sound.encode(None))


def _samples(source: Path) -> AudioFrame:
    with wave.open(str(source)) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        frame = AudioFrame.from_ndarray(data[None], format="s16", layout="mono")
        frame.sample_rate = file.getframerate()
    return frame


def silence(seconds: float) -> Path:
    """A wav file in which nobody says anything."""
    path = Path(mkdtemp(prefix="holdfast-silence-")) / "silence.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(round(32_000 * seconds)))
    return path
