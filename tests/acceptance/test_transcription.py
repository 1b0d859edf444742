"""`holdfast transcribe` as people use it: started, killed, started again; and its page in a
browser."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.acceptance.chromium import chromium
from tests.acceptance.conftest import Cli
from tests.speech import TALK, recording, spoken

from holdfast.apps.transcription.testing import word_error_rate

TIMEOUT = 100.0
PARAGRAPHS = (
    "Good evening, and welcome to the meeting of the city council. Tonight we talk about the "
    "parks, the river, the old bridge, and the new library.",
    "We want to plant more trees along the main path, because there is no shade in summer, and "
    "many older people can not walk that far in the sun.",
    "The library will open in September, with longer hours than before. Children can borrow "
    "games and musical instruments, and it will be free for everybody.",
    "Thank you for listening to this long report. Please ask your questions now, or write to us "
    "before the end of the month, and we will answer.",
)
SHORT_LEASE = {"TTL": "2s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}


def items_of(store: Path) -> dict[str, Any]:
    """The segments that are understood so far: all that is stored of each, with the attempt and the
    times."""
    if not store.exists():
        return {}
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        try:
            rows = database.execute(
                "SELECT * FROM checkpoints WHERE step = 'speech' AND key != ''"
            ).fetchall()
        except sqlite3.OperationalError:
            return {}
    return {row[2]: row for row in rows}


def test_a_recording_becomes_a_folder_of_files(cli: Cli) -> None:
    media = recording("mp3")
    answer = cli("transcribe", str(media), "-o", "out", "--json")
    summary = json.loads(answer.out)
    folder = cli.folder / "out"
    assert sorted(path.name for path in folder.iterdir()) == summary["files"]
    transcript = json.loads((folder / "transcript.json").read_text())
    assert word_error_rate(TALK, transcript["rawText"]) < 0.1
    assert summary["transcript"] == transcript["id"]
    again = cli("transcribe", str(media), "-o", "again", "--json")
    assert json.loads(again.out)["run"] == summary["run"]
    page = (cli.folder / "again" / "transcript.html").read_text()
    relative = os.path.relpath(media, cli.folder / "again")
    assert f'src="{relative}"' in page


def test_what_can_not_be_transcribed_says_why(cli: Cli) -> None:
    assert "there is no file nothing.mp3" in cli("transcribe", "nothing.mp3", code=2).err
    (cli.folder / "a.mp3").write_text("no sound")
    assert "can't be read as a recording" in cli("transcribe", "a.mp3", code=None).err
    refused = cli("transcribe", "https://127.0.0.1/a.mp3", code=None)
    assert "not a public address" in refused.err


def test_a_kill_in_the_middle_repeats_no_finished_segment(cli: Cli) -> None:
    media = spoken("\n\n".join(PARAGRAPHS))
    cli.env |= {f"HOLDFAST_LEASE_{name}": value for name, value in SHORT_LEASE.items()}
    command = [sys.executable, "-m", "holdfast", "transcribe", str(media), "-o", "out"]
    store = cli.folder / "runs.db"
    process = subprocess.Popen(command, cwd=cli.folder, env=cli.env, stderr=subprocess.DEVNULL)
    until = time.monotonic() + TIMEOUT
    while not items_of(store) and process.poll() is None:
        assert time.monotonic() < until, "no segment was understood in time"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = items_of(store)
    answer = cli("transcribe", str(media), "-o", "out", "--json")
    run = json.loads(answer.out)["run"]
    view = json.loads(cli("runs", "show", run, "--json").out)
    speech = next(step for step in view["steps"] if step["name"] == "speech")
    after = items_of(store)
    assert 0 < len(before) < len(after) == speech["items"]
    assert {key: after[key] for key in before} == before
    transcript = json.loads((cli.folder / "out" / "transcript.json").read_text())
    assert word_error_rate(" ".join(PARAGRAPHS), transcript["rawText"]) < 0.1


def test_the_page_plays_the_recording_and_follows_the_words(cli: Cli, tmp_path: Path) -> None:
    media = tmp_path / "talk.wav"
    media.write_bytes(spoken().read_bytes())
    cli("transcribe", str(media), "-o", "out")
    with chromium() as browser:
        page = browser.new_page()
        problems: list[Any] = []
        page.on("pageerror", lambda error: problems.append(error))
        page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        page.goto((cli.folder / "out" / "transcript.html").as_uri())
        word = page.locator("span[data-start]").nth(5)
        word.click()
        start = float(word.get_attribute("data-start") or 0)
        page.locator("span.now").first.wait_for()
        assert page.evaluate("document.getElementById('player').currentTime") >= start - 0.1
        marked = page.locator("span.now").first
        assert float(marked.get_attribute("data-start") or 0) >= start
    assert problems == []
