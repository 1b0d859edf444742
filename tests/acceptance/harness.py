"""A folder with a store, real worker processes on it, and polling with a deadline instead of
sleeping."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.gated_pipeline import NOTES, gated

from holdfast import Holdfast, RunHandle
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.run import Run

PIPELINE = Path(__file__).with_name("gated_pipeline.py")
TIMEOUT = 30.0
POLL = 0.03
SHORT_LEASE = {"ttl": "2s", "renew": "500ms", "margin": "500ms", "sweep": "300ms"}


class Deployment(NamedTuple):
    """What the workers of a harness share: a store, and the file with their pipelines."""

    store: str
    code: Path


class WorkerProcess:
    """`holdfast worker` in a process of its own."""

    def __init__(
        self, folder: Path, number: int, deployment: Deployment, lease: dict[str, str], grace: str
    ) -> None:
        command = [sys.executable, "-m", "holdfast", "--store", deployment.store]
        command += ["--app", str(deployment.code), "worker", "--drain-timeout", grace]
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        env |= {f"HOLDFAST_LEASE_{name.upper()}": value for name, value in lease.items()}
        self._folder = folder
        self._log = folder / f"worker-{number}.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def is_up(self) -> bool:
        return " serves " in self.log

    def send(self, number: signal.Signals) -> None:
        assert self._process.poll() is None, f"worker {self.pid} has ended:\n{self.log}"
        self._process.send_signal(number)

    def open_gate(self) -> None:
        (self._folder / f"gate-{self.pid}").touch()

    def noted(self, text: str) -> bool:
        return f"{self.pid} {text}" in notes(self._folder)

    def exit_code(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def notes(folder: Path) -> list[str]:
    path = folder / NOTES
    return path.read_text().splitlines() if path.exists() else []


class Harness:
    """`async with Harness(tmp_path) as harness:` opens the store as a client and kills its workers
    at the end."""

    def __init__(self, folder: Path, *, store: str | None = None, code: Path = PIPELINE) -> None:
        self.folder = folder
        self.deployment = Deployment(store or f"sqlite:///{folder}/holdfast.db", code)
        self.app = Holdfast(self.deployment.store, pipelines=[gated], worker=False)
        self._workers: list[WorkerProcess] = []

    async def __aenter__(self) -> Harness:
        await self.app.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        await self.app.close()

    def start_worker(
        self, *, lease: dict[str, str] | None = None, grace: str = "5s"
    ) -> WorkerProcess:
        number = len(self._workers) + 1
        worker = WorkerProcess(self.folder, number, self.deployment, lease or {}, grace)
        self._workers.append(worker)
        return worker

    async def run_in_slow_step(self, worker: WorkerProcess, input: str) -> RunHandle:
        """Submit a run, and wait until this worker is in the middle of it."""
        run = await self.app.submit(gated, input)
        await self.until(
            lambda: worker.noted("begins slow"), "the first worker is in its slow step"
        )
        return run

    async def until(self, ask: Callable[[], Any], description: str) -> None:
        """Poll until the condition holds."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = ask()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            assert time.monotonic() < deadline, (
                f"waited {TIMEOUT:.0f} s: {description}\n{self._logs()}"
            )
            await asyncio.sleep(POLL)

    def _logs(self) -> str:
        return "\n".join(f"--- worker {worker.pid}\n{worker.log}" for worker in self._workers)

    async def is_over(self, run: RunHandle) -> bool:
        return bool(await self.app.store.over([run.id]))

    async def exit_code(self, worker: WorkerProcess) -> int | None:
        await self.until(lambda: worker.exit_code() is not None, f"worker {worker.pid} ends")
        return worker.exit_code()

    async def everything_about(self, run: RunHandle) -> tuple[Run, list[Event], list[Checkpoint]]:
        store = self.app.store
        return await run.info(), await store.history(run.id), await store.checkpoints(run.id)

    async def story_of(self, run: RunHandle) -> list[str]:
        """The types of the run's events, in order."""
        return [event.type for event in await self.app.store.history(run.id)]
