"""Worker processes that are killed and told to stop, and what they noted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.recovery import pipelines

TIMEOUT = 120.0
POLL = 0.01


class Start(NamedTuple):
    """An item has started."""

    at: float
    pid: int
    pipeline: str
    run: str


class Workers:
    """`holdfast worker` processes on one store, with all defaults."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        self.folder.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._started:
            worker.kill()
            worker.wait()

    async def start(self) -> subprocess.Popen[bytes]:
        """One that is up."""
        worker, log = self._launch()
        await until(lambda: " serves " in log.read_text(), f"worker {worker.pid} is up")
        return worker

    def _launch(self) -> tuple[subprocess.Popen[bytes], Path]:
        environment = {name: text for name, text in os.environ.items() if name[:9] != "HOLDFAST_"}
        command = [sys.executable, "-m", "holdfast", "--store", self.store]
        command += ["--app", pipelines.__file__, "worker"]
        log = self.folder / f"worker-{len(self._started)}.log"
        with log.open("wb") as output:
            worker = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=output, stderr=output
            )
        self._started.append(worker)
        return worker, log

    def starts(self) -> list[Start]:
        path = self.folder / pipelines.STARTS
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split() for line in lines]
        return [Start(float(at), int(pid), pipeline, run) for at, pid, pipeline, run in words]


async def stop(worker: subprocess.Popen[bytes]) -> float:
    """Tell it to stop. The seconds until it was gone."""
    asked_at = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    await asyncio.to_thread(worker.wait)
    return time.monotonic() - asked_at


async def until(ask: Callable[[], object], description: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not ask():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {TIMEOUT:.0f} s: {description}")
        await asyncio.sleep(POLL)
