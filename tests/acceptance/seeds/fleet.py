"""Workers of a compute queue, each a process of its own, and what they wrote into their logs."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

LINE = re.compile(
    r"(?P<at>\S+Z) - \[TraceID: (?P<trace>[^]]*)\] (?P<text>.*?)(?: \| Data: (?P<data>.*))?"
)
TIMEOUT = 60.0


class LogLine(NamedTuple):
    at: str
    trace: str
    text: str
    data: dict[str, Any]


def wait_until(condition: Callable[[], Any], description: str) -> Any:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"it did not happen within {TIMEOUT:g} s: {description}")


class QueueWorker:
    """`holdfast worker` with its log in a file."""

    def __init__(self, folder: Path, name: str, env: dict[str, str]) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "worker"],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )

    @property
    def lines(self) -> list[LogLine]:
        """The lines in the format of the queue, in their order."""
        parsed = (LINE.fullmatch(line) for line in self._log.read_text().splitlines())
        return [
            LogLine(m["at"], m["trace"], m["text"], json.loads(m["data"] or "{}"))
            for m in parsed
            if m
        ]

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def leads_since(self) -> str:
        """When it began to lead, by its own log; None if it does not lead."""
        elections = [line for line in self.lines if line.text.startswith("Leader election")]
        return (
            elections[-1].at
            if elections and elections[-1].text == "Leader election acquired"
            else ""
        )

    def until(self, text: str, times: int = 1) -> None:
        try:
            wait_until(lambda: self.texts.count(text) >= times, text)
        except AssertionError as error:
            raise AssertionError(f"{self.name}: {error}\n{self.log}") from None

    def until_it_serves(self) -> None:
        wait_until(lambda: " serves " in self.log, f"{self.name} serves")

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.tell(signal.SIGCONT)
            self.tell(number)
        return self.process.wait(TIMEOUT)


def _is_locked(url: str) -> bool:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0.5, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        return False
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()


class Fleet:
    def __init__(self, folder: Path, store: str, app: str, **env: str) -> None:
        self.folder, self.store = folder, store
        environment = {
            name: v for name, v in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        self.env = environment | {
            "HOME": str(folder),
            "HOLDFAST_STORE": store,
            "HOLDFAST_APP": str(app),
            "HOLDFAST_LOG_FORMAT": "trace",
            "HOLDFAST_LEASE_TTL": "3s",
            "HOLDFAST_LEASE_RENEW": "1s",
            "HOLDFAST_LEASE_MARGIN": "0.5s",
            "HOLDFAST_LEASE_SWEEP": "0.5s",
            "COMPUTE_QUEUE_LEADER_KEY": "locks:compute:generate:leader:v1",
            "COMPUTE_QUEUE_LEADER_TTL_MS": "3000",
            "COMPUTE_QUEUE_LEADER_RENEW_MS": "1000",
            **env,
        }
        self.workers: list[QueueWorker] = []

    def start(self, name: str) -> QueueWorker:
        self.workers.append(QueueWorker(self.folder, name, self.env))
        return self.workers[-1]

    def leader(self) -> QueueWorker:
        """The worker that was the last one to say that it leads."""
        alive = [worker for worker in self.workers if worker.process.poll() is None]

        def latest() -> QueueWorker | None:
            leader = max(alive, key=lambda worker: worker.leads_since)
            return leader if leader.leads_since else None

        return wait_until(latest, "somebody leads")

    @property
    def logs(self) -> str:
        return "\n".join(f"--- {worker.name}\n{worker.log}" for worker in self.workers)

    def pause(self, worker: QueueWorker) -> None:
        """Pause a worker, but not while it holds the lock of an SQLite file, because then nobody
        could write until it goes on."""
        worker.tell(signal.SIGSTOP)
        while self.store.startswith("sqlite:") and _is_locked(self.store):
            worker.tell(signal.SIGCONT)
            time.sleep(0.01)
            worker.tell(signal.SIGSTOP)

    def cli(self, *words: str, **env: str) -> Any:
        command = [sys.executable, "-m", "holdfast", *words]
        process = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert process.returncode == 0, process.stderr
        return process

    def end(self) -> None:
        for worker in self.workers:
            worker.end(signal.SIGKILL)
