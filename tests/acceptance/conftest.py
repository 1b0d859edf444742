"""The real command in a folder of its own: a store, a settings file and a few pipelines."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast.cli.main import main

PIPELINES = Path(__file__).with_name("pipelines_for_cli.py")
HOLDFAST = [sys.executable, "-m", "holdfast"]


class Answer:
    """What a command wrote and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"<exit {self.code}>\n{self.out}\n{self.err}"


class Cli:
    """Calls `holdfast` in one folder. Nothing of the caller's own settings reaches it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        self.env |= {
            "HOME": str(folder),
            "HOLDFAST_SECRETS_DIR": str(folder / "secrets"),
            "NO_COLOR": "1",
        }
        (folder / "pipelines.py").write_text(PIPELINES.read_text())
        (folder / "holdfast.toml").write_text(
            'store = "sqlite:///runs.db"\napp = ["pipelines.py"]\n'
        )

    def __call__(self, *words: str, code: int | None = 0, stdin: str = "", **env: str) -> Answer:
        process = subprocess.run(
            [*HOLDFAST, *words],
            cwd=self.folder,
            env=self.env | env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        answer = Answer(process.returncode, process.stdout, process.stderr)
        assert code is None or answer.code == code, answer
        return answer

    def here(self, *words: str, code: int | None = 0, **env: str) -> Answer:
        """The same code inside this process, without the time that starting Python takes."""
        out, err = io.StringIO(), io.StringIO()
        with (
            chdir(self.folder),
            _logging_restored(),
            mock.patch.dict(os.environ, self.env | env, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main(words)
        answer = Answer(int(ended.value.code or 0), out.getvalue(), err.getvalue())
        assert code is None or answer.code == code, answer
        return answer

    def start(self, *words: str, **env: str) -> Started:
        return Started(
            subprocess.Popen(
                [*HOLDFAST, *words],
                cwd=self.folder,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )

    def submit(self, *words: str) -> str:
        return self.here("run", *words, "--no-wait").out.strip()

    def state(self, run: str) -> str:
        return self.here("runs", "show", run, "--json").json["run"]["state"]


@contextmanager
def _logging_restored() -> Iterator[None]:
    """What a command does to the process's log must not reach other tests."""
    logger = logging.getLogger("holdfast")
    before = logger.handlers[:], logger.level, logger.propagate
    try:
        yield
    finally:
        logger.handlers[:], logger.level, logger.propagate = before


class Started:
    """A command that is still running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output: list[str] = []

    def until(self, words: str) -> None:
        """Read what it says until these words come."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.output.append(line)
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}: {self.output}")

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> Answer:
        out, err = self.process.communicate(timeout=60)
        return Answer(self.process.returncode, out, "".join(self.output) + err)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A store in which something of each kind has happened, for tests that only look."""
    return Stage(tmp_path_factory.mktemp("stage"))


class Stage(Cli):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.succeeded = self.here("run", "greet", "-i", "name=Ada", "--json").json["run"]
        fail = ("-i", "trouble=fail")
        self.failed = self.here("run", "greet", "-i", "name=Bob", *fail, "--json", code=5).json[
            "run"
        ]
        self.paused = self.submit(
            "greet", "-i", "name=Eve", "-i", "trouble=pause", "--tenant", "acme"
        )
        self.here("worker", "--once")
        self.queued = self.submit(
            "greet", "-i", "name=Kay", "--delay", "1h", "--idempotency-key", "k-1"
        )
        self.cancelled = self.submit("greet", "-i", "name=Max", "--delay", "1h")
        self.here("runs", "cancel", self.cancelled, "--reason", "wrong name")
