"""Every command on the pages about systems that send messages works, in the order of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import postgres_server
from tests.docs.test_migrate import PAGES, Terminal
from tests.emulators import shared_pubsub
from tests.integration.redis.helpers import a_server

SERVER = "redis://localhost:6379/0"
DATABASE = "postgresql://db.example.org/app"
FOLDER = "/mnt/shared"
FILES = re.compile(r"`([\w.]+\.(?:py|toml))`:\n\n```\w+\n(.*?)^```", re.M | re.S)


class MessageTerminal(Terminal):
    """One with servers of its own, whose worker says when it receives."""

    def run_all(self, redis) -> None:
        for name, text in FILES.findall(self.text):
            (self.folder / name).write_text(text)
        self.env |= {"PYTHONPATH": str(PAGES.parents[1]), "HOLDFAST_LEASE_SWEEP": "1s"}
        for words in self.commands():
            if words[0] == "redis-cli":
                self.answers = [*getattr(self, "answers", []), redis.call(*words[1:])]
                if words[1] == "XADD":
                    self.until(lambda text: "succeeded" in text, "runs", "list")
            elif words[0] == "export":
                self.run([self.with_servers(word, redis) for word in words])
            elif "worker" in words[1] or "holdfast.worker" in words:
                self.start(words)
            else:
                self.run(words)

    def with_servers(self, word: str, redis) -> str:
        word = word.replace(SERVER, redis.url()).replace(FOLDER, str(self.folder / "shared"))
        if DATABASE in word:
            self.env |= shared_pubsub().environment
            url = postgres_server.shared_server().url(postgres_server.fresh_schema())
            word = word.replace(DATABASE, url)
        return word

    def start(self, words: list[str]) -> None:
        module = ["-m", *words] if words[0] == "holdfast" else words[1:]
        log = self.folder / "worker.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *module], cwd=self.folder, env=self.env, stdout=out, stderr=out
            )
        self.background.append(process)
        self.until(lambda _: " receives " in log.read_text(), "version")


@pytest.mark.parametrize("page", ["report-worker.md", "job-worker.md", "ingestion.md"])
def test_a_page_can_be_typed(page: str, tmp_path: Path) -> None:
    with a_server() as redis:
        terminal = MessageTerminal(tmp_path, page)
        try:
            terminal.run_all(redis)
        finally:
            terminal.end()
        if page == "report-worker.md":
            assert '"status":"completed"' in terminal.answers[1].replace(" ", "")


@pytest.mark.parametrize("page", ["report-worker.md", "job-worker.md", "ingestion.md"])
def test_a_page_says_what_you_have_what_changes_and_what_is_safer(page: str) -> None:
    text = (PAGES / page).read_text()
    assert "You have" in text
    assert "## What changes" in text
    assert "## What is safer" in text
