"""Every command on the pages about coming from other systems works, in the order of the page."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import redis_server

from holdfast.apps.compat import PipelineLockManager
from holdfast.cli.main import root

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "migrate"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
JSON = re.compile(r"`(\w+\.json)`[^\n]*\n\n```json\n(.*?)^```", re.M | re.S)


class Terminal:
    """Runs the commands of a page in a folder of its own, in which `examples` is ours."""

    def __init__(self, folder: Path, page: str, **env: str) -> None:
        self.text = (PAGES / page).read_text()
        self.folder = folder
        environment = {
            name: v for name, v in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        self.env = {**environment, "HOME": str(folder), "NO_COLOR": "1", **env}
        self.background: list[subprocess.Popen[bytes]] = []
        (folder / "examples").symlink_to(ROOT / "examples")
        for name, text in JSON.findall(self.text):
            (folder / name).write_text(text)

    def commands(self) -> Iterator[list[str]]:
        for block in CONSOLE.findall(self.text):
            for line in block.splitlines():
                assert line.startswith("$ "), line
                yield shlex.split(line[2:])

    def run(self, words: list[str]) -> None:
        if words[0] == "export":
            self.env |= dict(word.split("=", 1) for word in words[1:])
            return
        assert words[0] == "holdfast", words
        command = [sys.executable, "-m", *words]
        if words[1:] == ["worker"]:
            self.background.append(subprocess.Popen(command, cwd=self.folder, env=self.env))
            return
        process = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60
        )
        assert process.returncode == 0, f"{shlex.join(words)}\n{process.stdout}{process.stderr}"

    def until(self, condition: Callable[[str], bool], *words: str) -> None:
        deadline = time.monotonic() + 60
        answer = ""
        while time.monotonic() < deadline:
            command = [sys.executable, "-m", "holdfast", *words]
            answer = subprocess.run(
                command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60
            ).stdout
            if condition(answer):
                return
        raise AssertionError(answer)

    def end(self) -> None:
        for process in self.background:
            process.terminate()
            process.wait(60)


def test_pipeline_locks(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "pipeline-locks.md")
    url = redis_server.shared_server().url(prefix=redis_server.fresh_prefix())

    async def hold() -> None:
        manager = PipelineLockManager(store=url)
        await manager.acquire_lock("acme1281", "gcp_billing_export", "abc-123", "api_user")
        await manager.close()

    asyncio.run(hold())
    commands = list(terminal.commands())
    assert commands[0] == ["export", "HOLDFAST_STORE=redis://localhost:6379/0"]
    terminal.env["HOLDFAST_STORE"] = url
    for words in commands[1:]:
        terminal.run(words)


def test_compute_queue(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "compute-queue.md", COMPUTE_WORKSPACE=str(tmp_path / "workspace"))
    try:
        for words in terminal.commands():
            if words[1] == "lanes":
                terminal.until(lambda text: '"leader": null' not in text and "term" in text,
                               "lanes", "list", "--json")  # fmt: skip
            terminal.run(words)
        terminal.until(lambda text: "succeeded" in text, "runs", "list")
    finally:
        terminal.end()
    assert (tmp_path / "workspace" / "orders" / ".git").is_dir()


@pytest.mark.parametrize("page", ["pipeline-locks.md", "compute-queue.md"])
def test_a_page_says_what_you_have_what_changes_and_what_is_safer(page: str) -> None:
    text = (PAGES / page).read_text()
    assert "You have" in text
    assert "## What changes" in text
    assert "## What is safer" in text


def spans() -> list[str]:
    """Commands in the middle of a text."""
    matches = (
        re.findall(r"`(holdfast [a-z][^`]*)`", page.read_text()) for page in PAGES.glob("*.md")
    )
    return sorted({span for page in matches for span in page})


@pytest.mark.parametrize("span", spans())
def test_a_command_in_a_text_exists_with_its_options(span: str) -> None:
    words = shlex.split(span)[1:]
    assert CliRunner().invoke(root, [*words, "--help"]).exit_code == 0
    assert CliRunner().invoke(root, [*words, "--no-such-option"]).exit_code != 0
