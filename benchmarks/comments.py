"""`python -m benchmarks.comments`: how long a report takes, offline and with a model behind a fixed
latency.

Offline: 10,000 generated comments, the whole command in a process of its own, wall time and peak
memory. With a model: 2,000 comments against the fake server (a process of its own) at 1.5 s a call
and 64 calls in flight, as a ratio to what latency and concurrency alone dictate: for each kind of
call that has to wait for another, its calls ÷ 64, rounded up, times 1.5 s."""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parents[1] / "examples" / "data" / "riverside.csv"
LATENCY = 1.5
IN_FLIGHT = 64
ONE_AFTER_THE_OTHER = (
    "clustering", "merging", "assignment", "extending", "extraction",
    "requote", "dedup", "summaries", "overview",
)  # fmt: skip
"""Which calls wait for which. Groups are made while claims are still read: only the last of them
are waited for."""


def generate(path: Path, count: int, seed: int = 7) -> None:
    """Comments put together from sentences of our own sample, with words exchanged, so that no two
    files are alike."""
    chance = random.Random(seed)
    with SAMPLE.open(encoding="utf-8", newline="") as file:
        texts = [
            row["comment-body"] for row in csv.DictReader(file) if len(row["comment-body"]) > 20
        ]
    sentences = [
        part.strip() + "." for text in texts for part in text.split(".") if len(part.strip()) > 15
    ]
    words = sorted(
        {word for text in texts for word in text.split() if word.isalpha() and len(word) > 3}
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name", "comment"])
        for number in range(count):
            selection = chance.sample(sentences, chance.choice((1, 1, 2, 3)))
            writer.writerow(
                [
                    number,
                    f"person {chance.randrange(count // 2)}",
                    _varied(" ".join(selection), words, chance),
                ]
            )


def _varied(text: str, words: list[str], chance: random.Random) -> str:
    varied = text.split()
    for _ in range(max(1, len(varied) // 6)):
        varied[chance.randrange(len(varied))] = chance.choice(words)
    return " ".join(varied)


def build(file: Path, folder: Path, **environment: str) -> tuple[float, float]:
    """Seconds and megabytes of `holdfast report build`, as a child of its own."""
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "report",
        "build",
        str(file),
        "-o",
        str(folder / "out"),
        "--json",
    ]
    command += ["--store", f"sqlite:///{folder / 'holdfast.db'}"]
    child = [sys.executable, "-c", CHILD, *command]
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ended = subprocess.run(
        child, env={**usual, **environment}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(ended.stderr)
    seconds, kilobytes = ended.stdout.splitlines()[-1].split()
    return float(seconds), int(kilobytes) / 1024


CHILD = """
import resource, subprocess, sys, time
began = time.monotonic()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@contextmanager
def fake_model() -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "holdfast.testing.fakellm",
        "--latency",
        str(LATENCY),
        "--brain",
        "report",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        try:
            yield url
        finally:
            server.terminate()


def warmed_up(folder: Path) -> None:
    """Once before, so that compiling Python is not measured: nobody else pays for it twice
    either."""
    (folder / "warm").mkdir()
    generate(folder / "warm" / "few.csv", 20)
    build(folder / "warm" / "few.csv", folder / "warm")


def offline(folder: Path, count: int) -> dict[str, Any]:
    file = folder / "comments.csv"
    generate(file, count)
    seconds, megabytes = build(file, folder)
    return {
        "what": "offline",
        "comments": count,
        "seconds": round(seconds, 1),
        "peak MB": round(megabytes),
    }


def with_model(folder: Path, count: int) -> dict[str, Any]:
    file = folder / "comments.csv"
    generate(file, count)
    with fake_model() as url:
        address = f"openai:fake-1?base_url={url}/v1&in_flight={IN_FLIGHT}"
        seconds, _ = build(file, folder, HOLDFAST_LLM=address, OPENAI_API_KEY="fake")
        with urllib.request.urlopen(f"{url}/stats") as answer:
            stats = json.load(answer)
    least = bound(stats["tasks"])
    return {
        "what": "with a model",
        "comments": count,
        "calls": stats["calls"],
        "most in flight": stats["max_in_flight"],
        "seconds": round(seconds, 1),
        "latency alone": round(least, 1),
        "ratio": round(seconds / least, 2),
        "tasks": stats["tasks"],
    }


def bound(tasks: dict[str, int]) -> float:
    """The seconds that any schedule would take at least."""
    last = {"dedup": 1}
    rounds = [
        ceil(last.get(task, tasks[task]) / IN_FLIGHT)
        for task in ONE_AFTER_THE_OTHER
        if tasks.get(task)
    ]
    return sum(rounds) * LATENCY


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comments", description=__doc__)
    parser.add_argument("--only", choices=["offline", "model"])
    parser.add_argument(
        "--offline", type=int, default=10_000, metavar="N", help="comments without a model"
    )
    parser.add_argument("--model", type=int, default=2_000, metavar="N", help="comments with one")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, measure, count in (
        ("offline", offline, options.offline),
        ("model", with_model, options.model),
    ):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                warmed_up(Path(folder))
                began = time.monotonic()
                print(json.dumps(measure(Path(folder), count)), flush=True)
                print(f"  ({time.monotonic() - began:.0f} s with preparing)", file=sys.stderr)


if __name__ == "__main__":
    main()
