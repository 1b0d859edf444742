"""`python -m benchmarks.transcription`: how fast and how well speech is understood offline.

espeak-ng says a text of some minutes (`--minutes 3`). The same file goes through `holdfast
transcribe`, the whole command in a process of its own, and through pocketsphinx with the model of
its package, the obvious alternative whose weights also come in a package. Measured are the
real-time factor (seconds of waiting for each second of sound), the seconds of processors, which
other programs on the machine hardly change, the word error rate and the peak memory. With `--kill`
the command is killed in the middle once, and started again: then what it had finished must not be
done again."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.apps.transcription.testing import word_error_rate

PARAGRAPHS = (
    "Good evening, and welcome to the meeting of the city council. Tonight we talk about the "
    "parks, the river, the old bridge, and the new library. Many people wrote to us, and we thank "
    "all of them for their letters.",
    "We want to plant more trees along the main path, because there is no shade in summer, and "
    "many older people can not walk that far in the sun. The benches should be repaired before "
    "the spring.",
    "The library will open in September, with longer hours than before. Children can borrow games "
    "and musical instruments, and it will be free for everybody who lives here. We still need "
    "volunteers who read stories on Saturday mornings.",
    "The old bridge is closed for repairs until the end of the year. The engineers found that the "
    "stones are strong enough, but the road needs a new surface. Please use the bridge near the "
    "market in the meantime.",
    "Several families asked for a playground near the river. The water is deep there, so we would "
    "have to build a fence first. We will look at the costs, and talk about it again next month.",
    "Thank you for listening to this long report. Please ask your questions now, or write to us "
    "before the end of the month, and we will answer every letter.",
)
WORDS_PER_MINUTE = 172
"""A little more than espeak-ng says at the speed below."""
SHORT_LEASE = {"TTL": "2s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--kill", action="store_true", help="kill the command in the middle, once")
    parser.add_argument("--alone", action="store_true", help="leave pocketsphinx out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, seconds = speak(folder / "talk.wav", options.minutes)
        print(f"{seconds / 60:.1f} minutes of sound, {len(text.split()):,} words")
        show("holdfast transcribe", holdfast(folder, options.kill), text, seconds)
        if not options.alone:
            show("pocketsphinx", pocketsphinx(folder / "talk.wav"), text, seconds)


class Measured(NamedTuple):
    heard: str
    took: float
    """Seconds."""
    cpu_seconds: float
    """Seconds of all processors together."""
    memory: float
    """Megabytes, at most."""


def show(name: str, measured: Measured, text: str, seconds: float) -> None:
    rate = word_error_rate(text, measured.heard)
    print(
        f"{name}: {measured.took:.1f} s, real-time factor {measured.took / seconds:.3f}, "
        f"{measured.cpu_seconds:.1f} s of processors ({measured.cpu_seconds / seconds:.3f}), "
        f"word error rate {rate:.3f}, {measured.memory:.0f} MB"
    )


def speak(path: Path, minutes: float) -> tuple[str, float]:
    """Paragraphs in turn, until there are enough of them for the time."""
    words = round(minutes * WORDS_PER_MINUTE)
    spoken: list[str] = []
    while sum(len(paragraph.split()) for paragraph in spoken) < words:
        spoken.append(PARAGRAPHS[len(spoken) % len(PARAGRAPHS)])
    (path.parent / "talk.txt").write_text("\n\n".join(spoken))
    say = ["espeak-ng", "-v", "en-us", "-s", "150", "-w", str(path)]
    subprocess.run([*say, "-f", str(path.parent / "talk.txt")], check=True)
    with wave.open(str(path)) as file:
        return " ".join(spoken), file.getnframes() / file.getframerate()


def holdfast(folder: Path, kill: bool) -> Measured:
    command = [sys.executable, "-m", "holdfast", "transcribe", "talk.wav", "-o", "out"]
    lease = {f"HOLDFAST_LEASE_{name}": value for name, value in SHORT_LEASE.items()}
    environment = {**os.environ, **(lease if kill else {})}
    began, cpu_before = time.perf_counter(), _cpu_seconds()
    before = _killed(command, folder, environment) if kill else {}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    took = time.perf_counter() - began
    if kill:
        after = _segments(folder / "holdfast.db")
        unchanged = sum(after[key] == row for key, row in before.items())
        print(f"killed with {len(before)} of {len(after)} segments done; {unchanged} of them kept")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    transcript = json.loads((folder / "out" / "transcript.json").read_text())["rawText"]
    return Measured(transcript, took, _cpu_seconds() - cpu_before, memory)


def _cpu_seconds() -> float:
    """Seconds of processors, of all processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _killed(command: list[str], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Started, and killed when half of the segments are understood. What was done by then."""
    store = folder / "holdfast.db"
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and len(_segments(store)) < _half(store):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return _segments(store)


def _half(store: Path) -> int:
    rows = _rows(store, "SELECT value FROM checkpoints WHERE step = 'segments' AND key = ''")
    if not rows:
        return 1
    value = rows[0][0]
    blobs = store.with_name("holdfast-files")
    text = (blobs / value.removeprefix("@blob:")).read_text() if value[0] == "@" else value
    return max(1, len(json.loads(text)["segments"]) // 2)


def _segments(store: Path) -> dict[str, Any]:
    """What is stored of each segment, with the attempt and the times."""
    rows = _rows(store, "SELECT key, * FROM checkpoints WHERE step = 'speech' AND key != ''")
    return {row[0]: row for row in rows}


def _rows(store: Path, query: str) -> list[Any]:
    if not store.exists():
        return []
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        try:
            return database.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []


def pocketsphinx(path: Path) -> Measured:
    """In a process of its own, so that its memory is its own. One core: it has no more."""
    process = subprocess.run(
        [sys.executable, "-c", POCKETSPHINX, str(path)], check=True, capture_output=True, text=True
    )
    return Measured(*json.loads(process.stdout.splitlines()[-1]))


POCKETSPHINX = """
import json, resource, sys, time
from pocketsphinx import Decoder, Segmenter
from holdfast.apps.transcription.audio.decoding import samples_of
began = time.perf_counter()
decoder = Decoder(samprate=16000, loglevel="ERROR")
segmenter = Segmenter(sample_rate=16000)
sound = b"".join(samples_of(sys.argv[1]))
class Stream:
    at = 0
    def read(self, count):
        part = sound[self.at : self.at + count]
        self.at += count
        return part
heard = []
for segment in segmenter.segment(Stream()):
    decoder.start_utt()
    decoder.process_raw(segment.pcm, full_utt=True)
    decoder.end_utt()
    if decoder.hyp():
        heard.append(decoder.hyp().hypstr)
took = time.perf_counter() - began
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([" ".join(heard), took, time.process_time(), memory]))
"""


if __name__ == "__main__":
    main()
